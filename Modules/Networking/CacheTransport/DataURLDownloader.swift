public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A downloader for `data:` URLs (RFC 2397). Embedded resources then use the same path as those from the network.
///
/// ```swift
/// configuration.schemeHandlers["data"] = DataURLDownloader()
/// ```
public struct DataURLDownloader: Downloader {
  public var id: ComponentID { ComponentID(Self.self) }

  /// Creates a downloader for embedded resources.
  public init() {}

  /// - Throws: `CacheError.Code.invalidURL` if the URL has no comma or its Base64 is invalid.
  @concurrent
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard request.head.scheme?.lowercased() == "data", let text = request.head.path else {
      throw CacheError(.unsupportedScheme, reason: "not a data: URL")
    }
    guard let comma = text.utf8.firstIndex(of: UInt8(ascii: ",")) else {
      throw CacheError(.invalidURL, reason: "a data: URL needs a comma before its data")
    }
    var type = text[..<comma]
    let isBase64 = type.lowercased().hasSuffix(";base64")
    if isBase64 { type = type.dropLast(7) }
    let bytes = HostName.percentDecodedBytes(text[text.index(after: comma)...]).bytes
    let body: Data
    if isBase64 {
      guard let decoded = Self.base64Decoded(bytes) else {
        throw CacheError(.invalidURL, reason: "the data: URL has invalid Base64")
      }
      body = decoded
    } else {
      body = Data(bytes)
    }
    // The meaning of a missing type (RFC 2397 §3).
    let contentType = type.isEmpty ? "text/plain;charset=US-ASCII" : type.hasPrefix(";") ? "text/plain\(type)" : String(type)
    let head = HTTPResponse(
      status: .ok,
      headerFields: [.cacheControl: "no-store", .contentType: contentType, .contentLength: String(body.count)])
    return DownloadResponse(head: head, body: ResourceBody(body))
  }

  /// Decodes Base64 as browsers do: it skips white space and accepts missing padding.
  private static func base64Decoded(_ bytes: [UInt8]) -> Data? {
    var digits = bytes.filter { byte in byte > 0x20 || ![0x20, 0x09, 0x0a, 0x0c, 0x0d].contains(byte) }
    while digits.last == UInt8(ascii: "=") { digits.removeLast() }
    digits += Array(repeating: UInt8(ascii: "="), count: (4 - digits.count % 4) % 4)
    return Data(base64Encoded: Data(digits))
  }
}
