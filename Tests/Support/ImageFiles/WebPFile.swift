import CacheCore
package import ImageCodecs

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// An animated WebP built from bytes (RFC 9649 §2.7). Each frame is encoded as a complete image.
package struct WebPFile {
  package var frames: [DecodedImage]
  /// The EXIF orientation, or `nil` for a file without EXIF.
  package var orientation: Int?

  /// The duration of each frame in milliseconds; missing ones are 100.
  package var delays: [Int]

  /// The number of times that the last frame is included.
  package var repetitions: Int

  package init(frames: [DecodedImage], orientation: Int? = nil, delays: [Int] = [], repetitions: Int = 1) {
    (self.frames, self.orientation, self.delays, self.repetitions) = (frames, orientation, delays, repetitions)
  }

  package func data() throws -> Data {
    guard let size = frames.first?.size else { return Data() }
    let edges = Self.three(size.width - 1) + Self.three(size.height - 1)
    // EXIF and animation flags.
    var content = Data("WEBP".utf8) + Self.chunk("VP8X", [orientation == nil ? 2 : 10, 0, 0, 0] + edges)
    content += Self.chunk("ANIM", [0, 0, 0, 0, 0, 0])
    for (index, frame) in frames.enumerated() {
      let delay = Self.three(index < delays.count ? delays[index] : 100)
      let chunk = Self.chunk("ANMF", Self.three(0) + Self.three(0) + edges + delay + [2] + (try Self.lossless(frame)))
      for _ in 0..<(index == frames.count - 1 ? repetitions : 1) { content += chunk }
    }
    if let orientation {
      let tiff: [UInt8] =
        Array("MM".utf8) + [0, 0x2A, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation), 0, 0, 0, 0, 0, 0]
      content += Self.chunk("EXIF", tiff)
    }
    return Data("RIFF".utf8) + Self.little(content.count) + content
  }

  /// Returns the only chunk of a still image. Encoders add others around it.
  private static func lossless(_ image: DecodedImage) throws -> Data {
    var encoder = ImageEncoder(.webp)
    encoder.isLossless = true
    let file = Array(try encoder.encode(image))
    var next = 12
    while next + 8 <= file.count {
      let length = file[next + 4..<next + 8].reversed().reduce(0) { $0 << 8 | Int($1) }
      let end = next + 8 + length + length % 2
      if file[next..<next + 4].elementsEqual("VP8L".utf8) { return Data(file[next..<end]) }
      next = end
    }
    return Data()
  }

  package static func chunk(_ kind: String, _ content: some Sequence<UInt8>) -> Data {
    let content = Data(content)
    return Data(kind.utf8) + little(content.count) + content + Data(count: content.count % 2)
  }

  private static func little(_ value: Int) -> Data { Data([0, 8, 16, 24].map { UInt8(truncatingIfNeeded: value >> $0) }) }
  private static func three(_ value: Int) -> [UInt8] { [0, 8, 16].map { UInt8(truncatingIfNeeded: value >> $0) } }
}
