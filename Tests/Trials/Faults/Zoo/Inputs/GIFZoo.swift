#if Service
import Foundation
import ImageCodecs
import ImageFiles

/// GIF files (GIF 89a).
enum GIFZoo {
  static func inputs() throws -> [ZooInput] { dimensions + frames + blocks + pixels + (try large()) }

  private static func screen(_ width: Int, _ height: Int, flags: UInt8 = 0x81) -> [UInt8] {
    let palette: [UInt8] = flags & 0x80 == 0 ? [] : .init(repeating: 90, count: 3 << (Int(flags & 7) + 1))
    return Array("GIF89a".utf8) + ZooBytes.little(width, 2) + ZooBytes.little(height, 2) + [flags, 0, 0] + palette
  }

  private static func image(
    _ width: Int, _ height: Int, x: Int = 0, y: Int = 0, flags: UInt8 = 0, minimum: UInt8 = 2,
    _ blocks: [UInt8] = [2, 0x4C, 1, 0]
  ) -> [UInt8] {
    [0x2C] + [x, y, width, height].flatMap { ZooBytes.little($0, 2) } + [flags, minimum] + blocks
  }

  private static func control(_ flags: UInt8, delay: Int = 0) -> [UInt8] {
    [0x21, 0xF9, 4, flags] + ZooBytes.little(delay, 2) + [0, 0]
  }

  private static func file(_ parts: [UInt8]...) -> Data { Data(parts.reduce(into: []) { $0 += $1 } + [0x3B]) }

  private static var dimensions: [ZooInput] {
    let huge = [(65_535, 65_535), (65_535, 62), (2_001, 2_000), (40_000, 40_000)]
    let empty = [(0, 0), (0, 5), (5, 0)]
    let strange: [(String, Data)] = [
      ("frame larger than the screen", file(screen(2, 2), image(60_000, 60_000))),
      ("frame at 65535", file(screen(2, 2), image(1, 1, x: 65_535, y: 65_535))),
      ("frame half outside", file(screen(4, 4), image(4, 4, x: 2, y: 2))), ("frame of 0x0", file(screen(4, 4), image(0, 0))),
      ("second frame of 65535x65535", file(screen(2, 2), image(2, 2), image(65_535, 65_535))),
    ]
    return ZooInput.family(
      "GIF dimensions", .refusal, huge.map { ("screen \($0.0)x\($0.1)", file(screen($0.0, $0.1), image(1, 1))) })
      + ZooInput.family(
        "GIF dimensions", .either, empty.map { ("screen \($0.0)x\($0.1)", file(screen($0.0, $0.1), image(1, 1))) })
      + ZooInput.family("GIF dimensions", .either, strange)
  }

  private static var frames: [ZooInput] {
    func repeated(_ count: Int) -> Data { GIFFile(frames: Array(repeating: (1, 0), count: count)).data }
    let tiny = image(1, 1).times(80_000)
    return ZooInput.family("GIF frames", .either, [("2000", repeated(2_000))])
      + ZooInput.family(
        "GIF frames", .refusal,
        [("2001", repeated(2_001)), ("50000", repeated(50_000)), ("80000 of a pixel", file(screen(2, 2), tiny))])
      + ZooInput.family(
        "GIF frames", .either,
        (0..<8).map {
          ("disposal \($0)", file(screen(9, 9), control($0 << 2, delay: 65_535), image(2, 2), control($0 << 2), image(3, 3)))
        })
  }

  private static var blocks: [ZooInput] {
    let comments = ([0x21, 0xFE, 1, 65, 0] as [UInt8]).times(200_000)
    let comment =
      [0x21, 0xFE] + ([255] + .init(repeating: 65, count: 255) as [UInt8]).times(4_000) + [0]
    let loop: [UInt8] = [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1, 0xFF, 0xFF, 0]
    let files: [(String, Data)] = [
      ("200000 comments", file(screen(2, 2), comments, image(2, 2))),
      ("comment of 1 MB", file(screen(2, 2), comment, image(2, 2))),
      ("1000 loops", file(screen(2, 2), loop.times(1_000), image(2, 2))),
      ("loop without a value", file(screen(2, 2), [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [0], image(2, 2))),
      ("unknown extension", file(screen(2, 2), [0x21, 0x77, 1, 1, 0], image(2, 2))),
      ("control alone", file(screen(2, 2), control(0))), ("no palette", file(screen(2, 2, flags: 0), image(2, 2))),
      ("palette cut", Data(screen(2, 2, flags: 0x87).prefix(40))),
      ("local palette cut", Data(screen(2, 2) + image(2, 2, flags: 0x87).prefix(20))),
      ("unknown block", file(screen(2, 2), [0x99, 1, 2, 3], image(2, 2))),
      ("trailer first", file(screen(2, 2), [0x3B], image(2, 2))),
      ("100000 zeros before the frame", file(screen(2, 2), .init(repeating: 0, count: 100_000), image(2, 2))),
    ]
    return ZooInput.family("GIF blocks", .either, files)
  }

  private static var pixels: [ZooInput] {
    let sizes: [UInt8] = [0, 1, 8, 9, 11, 12, 13, 31, 255]
    let endless = ([255] + .init(repeating: 0x55, count: 255) as [UInt8]).times(7_000)
    let clears = ([255] + .init(repeating: 0x24, count: 255) as [UInt8]).times(7_000)
    let files: [(String, Data)] = [
      ("of 1 MB for 4", file(screen(2, 2), image(2, 2, endless + [0]))),
      ("without an end", Data(screen(2, 2) + image(2, 2, endless))),
      ("clear codes", file(screen(1_000, 1_000), image(1_000, 1_000, clears + [0]))),
      ("missing", Data(screen(9, 9) + image(9, 9, []))),
      ("empty", file(screen(9, 9), image(9, 9, [0]))),
      ("a code that does not exist", file(screen(9, 9), image(9, 9, [3, 0xFC, 0xFF, 0xFF, 0]))),
      ("a color that does not exist", file(screen(2, 2, flags: 0x80), image(2, 2))),
      ("interlaced", file(screen(300, 300), image(300, 300, flags: 0x40))),
      ("too few for 2000x2000", file(screen(2_000, 2_000), image(2_000, 2_000))),
    ]
    return ZooInput.family(
      "GIF codes", .either, sizes.map { ("minimum of \($0) bits", file(screen(2, 2), image(2, 2, minimum: $0))) } + files)
  }

  /// Returns images of one color at the limit of pixels and beyond it.
  private static func large() throws -> [ZooInput] {
    let encoder = ImageEncoder(.gif)
    return ZooInput.family("GIF large", .image, [("at the limit", try encoder.encode(ZooSamples.plain(2_000, 2_000)))])
      + ZooInput.family("GIF large", .refusal, [("over the limit", try encoder.encode(ZooSamples.plain(2_001, 2_000)))])
  }
}
#endif
