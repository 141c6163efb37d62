internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A platform's response as a head that describes the bytes which are going to be delivered.
struct ReceivedHead {
  /// Codings that the platform takes off before it hands the bytes over. What stands here must be decoded by every version of it:
  /// bytes that stay encoded while the head says otherwise can't be read by anybody.
  #if canImport(FoundationNetworking)
  private static let decodedCodings: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]
  #else
  private static let decodedCodings: Set<String> = ["gzip", "x-gzip", "deflate", "br"]
  #endif

  /// Status and fields.
  let response: HTTPResponse
  /// Bytes that are going to be delivered; nil where nobody knows.
  let bodyLength: Int64?
  /// Bytes that the body takes on the network, when they differ from those delivered and are known.
  let encodedLength: Int64?

  /// - Parameters:
  ///   - method: what was asked: an answer to HEAD has no body.
  ///   - lacksBody: the platform swallowed the body.
  init?(_ platform: HTTPURLResponse, method: HTTPRequest.Method, lacksBody: Bool = false) {
    guard (100...999).contains(platform.statusCode) else { return nil }
    var fields = Self.fields(of: platform)
    let length = fields[.contentLength].flatMap(Self.length(from:))
    // One that is no number, or two that differ: where the body ends is anybody's guess (RFC 9112 §6.3).
    guard length != nil || fields[.contentLength] == nil else { return nil }
    let status = platform.statusCode
    if method == .head || status == 204 || status == 304 {
      // These fields describe what GET would bring (RFC 9110 §8.6), so they stay although no byte follows.
      (bodyLength, encodedLength) = (0, nil)
    } else if lacksBody {
      fields[.contentLength] = nil
      (bodyLength, encodedLength) = (0, nil)
    } else if Self.isDecoded(fields[.contentEncoding]) {
      fields[.contentEncoding] = nil
      fields[.contentLength] = nil
      (bodyLength, encodedLength) = (nil, length)
    } else {
      (bodyLength, encodedLength) = (length, nil)
    }
    response = HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
  }

  private static func isDecoded(_ contentEncoding: String?) -> Bool {
    guard let contentEncoding else { return false }
    let codings = contentEncoding.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
    return !codings.isEmpty && codings.allSatisfy(decodedCodings.contains)
  }

  /// Repeated and equal lengths are one length (RFC 9110 §8.6); anything else is none.
  private static func length(from value: String) -> Int64? {
    if value.utf8.allSatisfy({ (48...57).contains($0) }) { return Int64(value) }
    let values = Set(value.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
    guard values.count == 1, let text = values.first, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text)
  }

  /// Sorted by name, since a dictionary has no order; names that are no tokens can't be said in HTTP, so they are dropped.
  private static func fields(of platform: HTTPURLResponse) -> HTTPFields {
    var fields = HTTPFields()
    let pairs = platform.allHeaderFields.compactMap { key, value in
      (key.base as? String).map { ($0, value as? String ?? "\(value)") }
    }
    for (rawName, value) in pairs.sorted(by: { $0.0 < $1.0 }) {
      guard let name = HTTPField.Name(rawName) else { continue }
      // One field in two spellings comes as two keys.
      fields[name] = fields[name].map { "\($0), \(value)" } ?? value
    }
    return fields
  }
}
