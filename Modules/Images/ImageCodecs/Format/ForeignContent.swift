#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A description of bytes that are not an image, for the error's reason.
struct ForeignContent: CustomStringConvertible {
  let description: String

  init(_ data: Data) {
    let bytes = Array(data.prefix(ImageFormat.detectionLength))
    let markup = MarkupStart(data)?.element
    if bytes.isEmpty {
      description = "empty"
    } else if let markup {
      description = markup == "html" || markup == "head" || markup == "body" ? "an HTML page" : "markup (<\(markup.prefix(40))>)"
    } else if bytes.starts(with: "%PDF".utf8) {
      description = "a PDF document"
    } else if bytes.starts(with: [0x1F, 0x8B]) {
      description = "gzip data (not decompressed)"
    } else if bytes.starts(with: "PK\u{3}\u{4}".utf8) {
      description = "a ZIP archive"
    } else if bytes.first == UInt8(ascii: "{") || bytes.first == UInt8(ascii: "[") {
      description = "JSON"
    } else if bytes.allSatisfy({ $0 >= 0x20 || (0x09...0x0D).contains($0) }),
      String(validating: bytes.dropLast(3), as: UTF8.self) != nil
    {
      description = "text"
    } else {
      description = "of unknown format (first bytes \(bytes.prefix(8).map { Self.hexadecimal($0) }.joined(separator: " ")))"
    }
  }

  private static func hexadecimal(_ byte: UInt8) -> String {
    let text = String(byte, radix: 16)
    return byte < 16 ? "0\(text)" : text
  }
}
