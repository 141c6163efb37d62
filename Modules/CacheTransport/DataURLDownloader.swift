public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Answers `data:` URLs (RFC 2397), so that embedded resources travel the same path as the network.
public struct DataURLDownloader: Downloader {
  public var id: ComponentID { ComponentID(Self.self) }

  /// A provider of embedded resources.
  public init() {}

  /// - Throws: `CacheError.Code.invalidURL` when the URL has no comma, or its Base64 is none.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard request.head.scheme?.lowercased() == "data", let text = request.head.path else {
      throw CacheError(.unsupportedScheme, reason: "not a data: URL")
    }
    guard let comma = text.utf8.firstIndex(of: UInt8(ascii: ",")) else {
      throw CacheError(.invalidURL, reason: "a data: URL needs a comma in front of its data")
    }
    var type = text[..<comma]
    let isBase64 = type.lowercased().hasSuffix(";base64")
    if isBase64 { type = type.dropLast(7) }
    let bytes = Self.percentDecoded(text[text.index(after: comma)...])
    let body: Data
    if isBase64 {
      guard let decoded = Self.base64Decoded(bytes) else {
        throw CacheError(.invalidURL, reason: "the data: URL says Base64, and its data is none")
      }
      body = decoded
    } else {
      body = bytes
    }
    // RFC 2397 §3: what a missing type means.
    let contentType = type.isEmpty ? "text/plain;charset=US-ASCII" : type.hasPrefix(";") ? "text/plain\(type)" : String(type)
    let head = HTTPResponse(
      status: .ok,
      headerFields: [.cacheControl: "no-store", .contentType: contentType, .contentLength: String(body.count)])
    return DownloadResponse(head: head, body: Body(body))
  }

  private static func percentDecoded(_ text: Substring) -> Data {
    var bytes = Data()
    bytes.reserveCapacity(text.utf8.count)
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2)
      // The integer's initialiser alone would take a sign for a digit.
      if byte == UInt8(ascii: "%"), digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
        let decoded = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
      {
        bytes.append(decoded)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }

  /// Lenient as browsers are: blanks are skipped, and the padding may be missing.
  private static func base64Decoded(_ bytes: Data) -> Data? {
    var text = String(decoding: bytes.filter { ![0x20, 0x09, 0x0a, 0x0c, 0x0d].contains($0) }, as: UTF8.self)
    while text.hasSuffix("=") { text.removeLast() }
    text += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    return Data(base64Encoded: text)
  }
}
