#if Service
import Foundation
import ImageCodecs
import ImageFiles

/// WebP files (RFC 9649).
enum WebPZoo {
  static func inputs(_ samples: ZooSamples) throws -> [ZooInput] {
    guard let lossy = samples.webP, let lossless = samples.losslessWebP else { return containers([]) }
    return dimensions(lossy, lossless) + containers(chunk("VP8 ", in: lossy)) + frames(chunk("VP8L", in: lossless))
      + (try large())
  }

  private static func file(_ chunks: [UInt8], size: Int? = nil) -> Data {
    Data(Array("RIFF".utf8) + ZooBytes.little(size ?? chunks.count + 4, 4) + Array("WEBP".utf8) + chunks)
  }

  private static func chunk(_ kind: String, _ content: [UInt8]) -> [UInt8] { Array(WebPFile.chunk(kind, content)) }

  /// Returns the content of the first chunk of a kind.
  private static func chunk(_ kind: String, in file: Data) -> [UInt8] {
    let bytes = Array(file)
    guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: kind.utf8) }) else { return [] }
    let length = bytes[(start + 4)..<(start + 8)].reversed().reduce(0) { $0 << 8 | Int($1) }
    return Array(bytes[(start + 8)..<min(start + 8 + length, bytes.count)])
  }

  private static func canvas(_ width: Int, _ height: Int, flags: UInt8 = 0) -> [UInt8] {
    chunk("VP8X", [flags, 0, 0, 0] + ZooBytes.little(width - 1, 3) + ZooBytes.little(height - 1, 3))
  }

  private static func dimensions(_ lossy: Data, _ lossless: Data) -> [ZooInput] {
    let (key, lossless) = (chunk("VP8 ", in: lossy), chunk("VP8L", in: lossless))
    func lyingKey(_ width: Int, _ height: Int) -> [UInt8] {
      key.prefix(6) + ZooBytes.little(width, 2) + ZooBytes.little(height, 2) + key.dropFirst(10)
    }
    func lyingLossless(_ width: Int, _ height: Int) -> [UInt8] {
      [0x2F] + ZooBytes.little((width - 1) | (height - 1) << 14 | 1 << 28, 4) + lossless.dropFirst(5)
    }
    let huge = [(16_383, 16_383), (2_001, 2_000), (16_383, 250)]
    let sizes = [(1, 1), (61, 41), (2_000, 2_000), (16_383, 1)]
    let canvases = [(16_384, 16_384), (0x100_0000, 0x100_0000), (0x100_0000, 1), (2_001, 2_000)]
    var refused = huge.map { ("VP8 \($0.0)x\($0.1)", file(chunk("VP8 ", lyingKey($0.0, $0.1)))) }
    refused += huge.map { ("VP8L \($0.0)x\($0.1)", file(chunk("VP8L", lyingLossless($0.0, $0.1)))) }
    refused += canvases.map { ("canvas \($0.0)x\($0.1)", file(canvas($0.0, $0.1) + chunk("VP8L", lossless))) }
    refused.append(("VP8 0x0", file(chunk("VP8 ", lyingKey(0, 0)))))
    var strange = sizes.map { ("VP8 \($0.0)x\($0.1)", file(chunk("VP8 ", lyingKey($0.0, $0.1)))) }
    strange += sizes.map { ("VP8L \($0.0)x\($0.1)", file(chunk("VP8L", lyingLossless($0.0, $0.1)))) }
    strange.append(("scaling bits", file(chunk("VP8 ", lyingKey(0xC03C, 0xC028)))))
    return ZooInput.family("WebP dimensions", .refusal, refused) + ZooInput.family("WebP dimensions", .either, strange)
  }

  private static func containers(_ key: [UInt8]) -> [ZooInput] {
    let image = chunk("VP8 ", key)
    let exif = chunk("EXIF", Array("II".utf8) + [42, 0, 0xFF, 0xFF, 0xFF, 0x7F])
    var files = [0, 4, 12, 0x7FFF_FFFF, 0xFFFF_FFFE, 0xFFFF_FFFF].map { (size: Int) in ("size \(size)", file(image, size: size)) }
    files += [0, 1, 0x7FFF_FFFF, 0xFFFF_FFFF].map {
      ("chunk of length \($0)", file(Array("VP8 ".utf8) + ZooBytes.little($0, 4) + key))
    }
    files += [
      ("canvas alone", file(canvas(60, 40))), ("canvas of another size", file(canvas(90, 90) + image)),
      ("all flags", file(canvas(60, 40, flags: 0xFF) + image)), ("two images", file(image + image)),
      (
        "alpha of noise",
        file(canvas(60, 40, flags: 0x10) + chunk("ALPH", (0..<200).map { UInt8(truncatingIfNeeded: $0 &* 37) }) + image)
      ),
      ("alpha empty", file(canvas(60, 40, flags: 0x10) + chunk("ALPH", []) + image)),
      (
        "50000 unknown chunks",
        file(canvas(60, 40) + chunk("zzzz", []).times(50_000) + image)
      ),
      ("EXIF beyond the end", file(canvas(60, 40, flags: 8) + image + exif)),
      (
        "profile of noise",
        file(canvas(60, 40, flags: 0x20) + chunk("ICCP", (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 7) }) + image)
      ),
      ("XMP of a billion laughs", file(canvas(60, 40, flags: 4) + image + chunk("XMP ", Array(SVGZoo.laughs(9).utf8)))),
    ]
    return ZooInput.family("WebP chunks", .either, files)
  }

  private static func frames(_ lossless: [UInt8]) -> [ZooInput] {
    let image = chunk("VP8L", lossless)
    func frame(_ x: Int, _ y: Int, _ width: Int, _ height: Int, _ content: [UInt8]) -> [UInt8] {
      chunk("ANMF", [x, y, width - 1, height - 1, 0].flatMap { ZooBytes.little($0, 3) } + [0] + content)
    }
    func animated(_ width: Int, _ height: Int, _ frames: [UInt8]) -> Data {
      file(canvas(width, height, flags: 2) + chunk("ANIM", [0, 0, 0, 0, 0, 0]) + frames)
    }
    func repeated(_ count: Int, _ content: [UInt8]) -> [UInt8] {
      frame(0, 0, 60, 40, content).times(count)
    }
    let refused: [(String, Data)] = [
      ("canvas 16384x16384", animated(16_384, 16_384, frame(0, 0, 60, 40, image))),
      ("60000 empty", animated(60, 40, repeated(60_000, []))),
      ("3000 empty", animated(60, 40, repeated(3_000, []))),
    ]
    let strange: [(String, Data)] = [
      ("none", animated(60, 40, [])), ("outside", animated(60, 40, frame(0xFF_FFFF, 0xFF_FFFF, 60, 40, image))),
      ("larger than the canvas", animated(6, 4, frame(0, 0, 60, 40, image))),
      ("of another size", animated(60, 40, frame(0, 0, 20, 20, image))),
      ("of 16384x16384", animated(60, 40, frame(0, 0, 16_384, 16_384, image))),
      ("within a frame", animated(60, 40, frame(0, 0, 60, 40, frame(0, 0, 60, 40, image)))),
      ("empty", animated(60, 40, frame(0, 0, 60, 40, []))),
    ]
    return ZooInput.family("WebP frames", .refusal, refused) + ZooInput.family("WebP frames", .either, strange)
  }

  private static func large() throws -> [ZooInput] {
    ZooInput.family(
      "WebP large", .image,
      [
        ("lossless at the limit", try ZooSamples.losslessWebP(ZooSamples.plain(2_000, 2_000))),
        ("at the limit", try ImageEncoder(.webp).encode(ZooSamples.plain(2_000, 2_000))),
      ])
      + ZooInput.family(
        "WebP large", .refusal,
        [
          ("lossless over the limit", try ZooSamples.losslessWebP(ZooSamples.plain(2_001, 2_000))),
          ("over the limit", try ImageEncoder(.webp).encode(ZooSamples.plain(4_000, 4_000))),
        ])
  }
}
#endif
