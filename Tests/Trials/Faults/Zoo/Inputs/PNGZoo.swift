#if Service
import Foundation
import ImageFiles

/// PNG and APNG files (W3C PNG, third edition).
enum PNGZoo {
  private typealias Chunk = (String, [UInt8])

  static func inputs() -> [ZooInput] { dimensions + pixels + chunks + text + animations }

  /// Returns a file of chunks, of which the first one is the header.
  private static func file(
    _ width: Int, _ height: Int, depth: UInt8 = 8, color: UInt8 = 2, interlaced: Bool = false, _ chunks: [Chunk]
  ) -> Data {
    let header = PNGFile.number(width) + PNGFile.number(height) + [depth, color, 0, 0, interlaced ? 1 : 0]
    return join([("IHDR", header)] + chunks + [("IEND", [])])
  }

  private static func join(_ chunks: [Chunk]) -> Data {
    chunks.reduce(into: Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])) { $0 += PNGFile.chunk($1.0, $1.1) }
  }

  /// The pixels of a black image: rows of zeros, each after a filter byte.
  private static func zeros(_ width: Int, _ height: Int, bytesPerPixel: Int = 3) -> Chunk {
    ("IDAT", ZooBytes.zlibZeros(height * (1 + width * bytesPerPixel)))
  }

  private static let small: Chunk = zeros(4, 4)

  private static var dimensions: [ZooInput] {
    let refused = [
      (0, 5), (5, 0), (0x7FFF_FFFF, 0x7FFF_FFFF), (0x8000_0000, 1), (1, 0xFFFF_FFFF), (60_000, 60_000), (65_536, 1), (1, 65_536),
      (1_000_001, 1), (2_001, 2_000), (46_341, 46_341), (0x10_0001, 0x1000),
    ]
    let lying = [(5, 4), (100, 100), (1_000, 1_000), (2_000, 2_000), (1, 60_000), (60_000, 1)]
    let overLimit = file(2_001, 2_000, [zeros(2_001, 2_000)])
    return ZooInput.family("PNG dimensions", .refusal, refused.map { ("\($0.0)x\($0.1)", file($0.0, $0.1, [small])) })
      + ZooInput.family("PNG dimensions", .refusal, [("over the limit with pixels", overLimit)])
      + ZooInput.family("PNG dimensions", .refusal, lying.map { ("\($0.0)x\($0.1) with 16 pixels", file($0.0, $0.1, [small])) })
  }

  private static var pixels: [ZooInput] {
    let large = [
      ("at the limit", file(2_000, 2_000, [zeros(2_000, 2_000)])),
      ("at the limit in 16 bits", file(2_000, 2_000, depth: 16, color: 6, [zeros(2_000, 2_000, bytesPerPixel: 8)])),
      ("one row", file(60_000, 1, [zeros(60_000, 1)])), ("one column", file(1, 60_000, [zeros(1, 60_000)])),
    ]
    let strange = [
      ("of another size", file(4, 4, [zeros(2_000, 2_000)])),
      ("of 200 MB for 16 pixels", file(4, 4, [("IDAT", ZooBytes.zlibZeros(200_000_000))])),
      ("interlaced and too few", file(1_000, 1_000, interlaced: true, [small])),
      ("interlaced", file(1_999, 1_999, color: 0, interlaced: true, [zeros(2_100, 2_000, bytesPerPixel: 1)])),
      ("in 5000 chunks", file(64, 64, split(PNGFile.zlib([UInt8](repeating: 0, count: 64 * 193)), 5_000))),
      ("between 50000 empty chunks", file(4, 4, Array(repeating: ("IDAT", []), count: 50_000) + [small])),
      ("with an invalid filter", file(4, 4, [("IDAT", PNGFile.zlib([UInt8](repeating: 9, count: 52)))])),
      ("with a wrong checksum", file(4, 4, [("IDAT", small.1.dropLast() + [9])])),
    ]
    let refused = [
      ("missing", file(4, 4, [])), ("empty", file(4, 4, [("IDAT", [])])), ("not deflate", file(4, 4, [("IDAT", [1, 2, 3, 4])])),
    ]
    return ZooInput.family("PNG pixels", .image, large) + ZooInput.family("PNG pixels", .either, strange)
      + ZooInput.family("PNG pixels", .refusal, refused)
  }

  private static func split(_ bytes: [UInt8], _ count: Int) -> [Chunk] {
    let length = max(1, bytes.count / count)
    return stride(from: 0, to: bytes.count, by: length).map { ("IDAT", Array(bytes[$0..<min($0 + length, bytes.count)])) }
  }

  private static var chunks: [ZooInput] {
    let headers: [(UInt8, UInt8)] = [(3, 2), (16, 3), (0, 0), (255, 6), (8, 1), (8, 5), (8, 255), (1, 6), (4, 3)]
    let kinds = headers.map { ("depth \($0.0) color \($0.1)", file(4, 4, depth: $0.0, color: $0.1, [small])) }
    let lengths = [0xFFFF_FFFF, 0x8000_0000, 0x7FFF_FFFF, 1_000_000].map { length in
      var bytes = Array(file(4, 4, [small]))
      bytes.replaceSubrange(33..<37, with: PNGFile.number(length))
      return ("of length \(length)", Data(bytes))
    }
    var badSum = Array(file(4, 4, [small]))
    badSum[30] ^= 1
    let short = join([("IHDR", [0, 0, 0, 4]), small, ("IEND", [])])
    let refused: [(String, Data)] = [
      ("header alone", file(4, 4, [])), ("signature alone", Data(badSum.prefix(8))), ("short header", short),
      ("palette missing", file(4, 4, color: 3, [zeros(4, 4, bytesPerPixel: 1)])),
      ("unknown and critical", file(4, 4, [("ZZZZ", [1]), small])), ("no header", join([small, ("IEND", [])])),
    ]
    let long = [UInt8](repeating: 7, count: 3 * 257)
    let strange: [(String, Data)] = [
      ("wrong checksum", Data(badSum)), ("two headers", join([("IHDR", header), ("IHDR", header), small, ("IEND", [])])),
      ("palette of 257 colors", file(4, 4, color: 3, [("PLTE", long), zeros(4, 4, bytesPerPixel: 1)])),
      (
        "colors beyond the palette",
        file(4, 4, color: 3, [("PLTE", [1, 2, 3]), ("IDAT", PNGFile.zlib(.init(repeating: 3, count: 20)))])
      ),
      ("100000 unknown", file(4, 4, Array(repeating: ("zzZz", []), count: 100_000) + [small])),
      ("without an end", file(4, 4, [small]).dropLast(12)),
    ]
    return ZooInput.family("PNG chunks", .either, kinds + lengths + strange) + ZooInput.family("PNG chunks", .refusal, refused)
  }

  private static let header: [UInt8] = PNGFile.number(4) + PNGFile.number(4) + [8, 2, 0, 0, 0]

  /// Compressed texts and profiles, which libpng and libvips read before the pixels.
  private static var text: [ZooInput] {
    let bomb = ZooBytes.zlibZeros(100_000_000)
    let exif: [UInt8] = Array("MM".utf8) + [0, 0x2A, 0, 0, 0, 8, 0xFF, 0xFF] + .init(repeating: 0xFF, count: 100)
    let files: [(String, [Chunk])] = [
      ("zTXt of 100 MB", [("zTXt", Array("a\0\0".utf8) + bomb)]),
      ("iTXt of 100 MB", [("iTXt", Array("a\0\u{1}\0\0\0".utf8) + bomb)]),
      ("iCCP of 100 MB", [("iCCP", Array("a\0\0".utf8) + bomb)]), ("iCCP of nothing", [("iCCP", Array("a\0\0".utf8))]),
      ("20000 tEXt", Array(repeating: ("tEXt", Array("a\0b".utf8)), count: 20_000)),
      ("tEXt of 1 MB", [("tEXt", Array("a\0".utf8) + .init(repeating: 65, count: 1_000_000))]),
      ("eXIf with 65535 entries", [("eXIf", exif)]), ("eXIf in a loop", [("eXIf", exif.prefix(8) + [0, 0, 0, 0, 0, 8])]),
      ("physical size", [("pHYs", [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 1])]), ("gamma 0", [("gAMA", [0, 0, 0, 0])]),
    ]
    return ZooInput.family("PNG texts", .either, files.map { ($0.0, file(4, 4, $0.1 + [small])) })
  }

  private static func frame(_ sequence: Int, _ width: Int, _ height: Int, x: Int = 0, y: Int = 0) -> Chunk {
    ("fcTL", [sequence, width, height, x, y].flatMap(PNGFile.number) + [0, 0, 0, 0, 0, 0])
  }

  private static func announcing(_ count: Int) -> Chunk { ("acTL", PNGFile.number(count) + PNGFile.number(0)) }

  private static var animations: [ZooInput] {
    func repeated(_ count: Int) -> [Chunk] {
      let pixels = PNGFile.zlib([UInt8](repeating: 0, count: 4))
      var chunks = [announcing(count), frame(0, 4, 4), small]
      for number in 1..<count {
        chunks.append(frame(number * 2 - 1, 1, 1))
        chunks.append(("fdAT", PNGFile.number(number * 2) + pixels))
      }
      return chunks
    }
    let files: [(String, Data)] = [
      ("0 frames", file(4, 4, [announcing(0), small])),
      ("2 frames with one", file(4, 4, [announcing(2), frame(0, 4, 4), small])),
      ("100000 frames with one", file(4, 4, [announcing(100_000), frame(0, 4, 4), small])),
      ("2 to the 32 frames", file(4, 4, [announcing(0xFFFF_FFFF), frame(0, 4, 4), small])),
      ("1000 frames", file(4, 4, repeated(1_000))), ("3000 frames", file(4, 4, repeated(3_000))),
      ("20000 frames", file(4, 4, repeated(20_000))),
      ("frame outside", file(4, 4, [announcing(1), frame(0, 4, 4, x: 0x7FFF_FFFF, y: 9), small])),
      ("frame of 60000x60000", file(4, 4, [announcing(1), frame(0, 60_000, 60_000), small])),
      ("frame of 0x0", file(4, 4, [announcing(1), frame(0, 0, 0), small])),
      (
        "out of order", file(4, 4, [announcing(2), frame(7, 4, 4), small, frame(3, 4, 4), ("fdAT", PNGFile.number(2) + small.1)])
      ),
      ("data without a frame", file(4, 4, [announcing(1), small, ("fdAT", PNGFile.number(0) + small.1)])),
      ("short control", file(4, 4, [("acTL", [0]), ("fcTL", [0, 0]), small])),
      ("two announcements", file(4, 4, [announcing(1), announcing(9), frame(0, 4, 4), small])),
    ]
    return ZooInput.family("PNG animations", .either, files)
  }
}
#endif
