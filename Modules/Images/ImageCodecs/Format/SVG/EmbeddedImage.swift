internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// An image that an SVG contains as a `data:` URL (RFC 2397): PNG, JPEG or GIF, in base64. Every engine draws these
/// formats. In other formats, a codec without known limits would read the image, or the image would be missing without
/// an error.
struct EmbeddedImage {
  let data: Data
  let format: ImageFormat

  init(_ url: ArraySlice<UInt8>) throws(CacheError) {
    let content = url.dropFirst("data:".utf8.count)
    let head = content.prefix { $0 != UInt8(ascii: ",") }
    let words = head.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self).split(separator: " ").joined().lowercased()
    }
    guard let format = Self.formats[words.first ?? ""], words.last == "base64", head.endIndex < content.endIndex else {
      throw CacheError(
        .decodingFailed,
        reason: "SVG: unsupported embedded image data:\(head.excerpt.prefix(60)); supported are PNG, JPEG and GIF in base64")
    }
    guard let data = Self.decoded(content[(head.endIndex + 1)...]), ImageFormat(of: data) == format else {
      throw CacheError(.decodingFailed, reason: "SVG: an embedded image is not a \(format)")
    }
    self.data = data
    self.format = format
  }

  private static let formats: [String: ImageFormat] = [
    "image/png": .png, "image/jpeg": .jpeg, "image/jpg": .jpeg, "image/gif": .gif,
  ]

  private static func decoded(_ text: ArraySlice<UInt8>) -> Data? {
    var digits = Data(capacity: text.count + 3)
    var index = text.startIndex
    while index < text.endIndex {
      var byte = text[index]
      index += 1
      if byte == UInt8(ascii: "%") {
        guard index + 1 < text.endIndex, let high = text[index].hexValue, let low = text[index + 1].hexValue
        else { return nil }
        byte = high << 4 | low
        index += 2
      }
      if !byte.isBlank { digits.append(byte) }
    }
    // Decoders accept missing padding.
    if digits.count % 4 != 0 { digits.append(contentsOf: repeatElement(UInt8(ascii: "="), count: 4 - digits.count % 4)) }
    return Data(base64Encoded: digits)
  }
}
