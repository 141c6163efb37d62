internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A platform response converted to a head that describes the bytes to be delivered.
struct ReceivedHead {
  /// The content codings that the platform decodes. Every supported version of the platform must decode each of them. Otherwise
  /// the body would stay encoded without a `Content-Encoding` field.
  #if canImport(FoundationNetworking)
  private static let decodedCodings: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]
  private static let mayDecodeOthers = false
  #else
  private static let decodedCodings: Set<String> = ["gzip", "x-gzip", "deflate", "br"]
  /// Later versions of the platform may decode more, and then deliver more bytes than `Content-Length` announces.
  private static let mayDecodeOthers = true
  #endif

  /// The status and the fields.
  let response: HTTPResponse
  /// The number of bytes to be delivered, or `nil` if it is unknown.
  let bodyLength: Int64?
  /// The encoded size of the body in bytes, or `nil` if it is unknown or equal to ``bodyLength``.
  let encodedLength: Int64?

  /// - Parameters:
  ///   - method: The method of the request. A response to HEAD has no body.
  ///   - lacksBody: Whether the platform discarded the body.
  init?(_ platform: HTTPURLResponse, method: HTTPRequest.Method, lacksBody: Bool = false) {
    guard (100...999).contains(platform.statusCode) else { return nil }
    var fields = Self.fields(of: platform)
    let status = platform.statusCode
    let describesOtherBody = method == .head || status == 204 || status == 304
    // A transfer coding overrides the length (RFC 9112 §6.3).
    if !describesOtherBody, fields.contains(.transferEncoding) { fields[.contentLength] = nil }
    let length = fields.contentLength
    // With an invalid length, or two that differ, the end of the body is unknown (RFC 9112 §6.3).
    guard length != nil || fields[.contentLength] == nil else { return nil }
    if describesOtherBody {
      // These fields describe the response to GET (RFC 9110 §8.6), so they stay although there is no body.
      (bodyLength, encodedLength) = (0, nil)
    } else if lacksBody {
      fields[.contentLength] = nil
      (bodyLength, encodedLength) = (0, nil)
    } else if Self.isDecoded(fields[.contentEncoding]) {
      fields[.contentEncoding] = nil
      fields[.contentLength] = nil
      (bodyLength, encodedLength) = (nil, length)
    } else {
      (bodyLength, encodedLength) = (Self.mayDecodeOthers && fields[.contentEncoding] != nil ? nil : length, nil)
    }
    response = HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
  }

  private static func isDecoded(_ contentEncoding: String?) -> Bool {
    guard let contentEncoding else { return false }
    // These two names stand for no coding, and the platform skips them.
    let codings = contentEncoding.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
      .filter { $0 != "identity" && $0 != "none" }
    return !codings.isEmpty && codings.allSatisfy(decodedCodings.contains)
  }

  /// Returns the fields sorted by name, because a dictionary has no order. A name that is not a token is not valid in HTTP and is
  /// dropped.
  private static func fields(of platform: HTTPURLResponse) -> HTTPFields {
    var fields = HTTPFields()
    let pairs = platform.allHeaderFields.compactMap { key, value in
      (key.base as? String).map { ($0, value as? String ?? "\(value)") }
    }
    for (rawName, value) in pairs.sorted(by: { $0.0 < $1.0 }) {
      guard let name = HTTPField.Name(rawName) else { continue }
      // A field in two spellings has two keys.
      fields[name] = fields[name].map { "\($0), \(value)" } ?? value
    }
    return fields
  }
}
