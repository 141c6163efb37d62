internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The content codings that `URLSession` decodes. It leaves the `Content-Encoding` field of a body that it has decoded.
struct PlatformDecoding: Sendable {
  /// The codings that every supported version of the platform decodes. Otherwise the body would stay encoded without a
  /// `Content-Encoding` field.
  let codings: Set<String>
  /// Whether some versions of the platform also decode zstd. The start of a body then shows whether it was decoded.
  let mayDecodeZstandard: Bool
  /// Whether later versions of the platform may decode more. They then deliver more bytes than `Content-Length` announces.
  let mayDecodeOthers: Bool

  // Apple's systems decode zstd from version 26.0 on, and ask for it from 26.3 on (github.com/mdn/browser-compat-data/pull/28949
  // and github.com/Fyrd/caniuse/pull/7383, about Safari). No document says so for apps.
  static let apple = PlatformDecoding(
    codings: ["gzip", "x-gzip", "deflate", "br"], mayDecodeZstandard: true, mayDecodeOthers: true)
  static let linux = PlatformDecoding(
    codings: ["gzip", "x-gzip", "deflate", "br", "zstd"], mayDecodeZstandard: false, mayDecodeOthers: false)
  #if canImport(FoundationNetworking)
  static let current = linux
  #else
  static let current = apple
  #endif

  /// Returns whether the platform decodes a body with this `Content-Encoding`, or `nil` if the start of the body shows that.
  func decodes(_ contentEncoding: String?) -> Bool? {
    guard let contentEncoding else { return false }
    // These two names stand for no coding, and the platform skips them.
    let named = contentEncoding.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
      .filter { $0 != "identity" && $0 != "none" }
    guard !named.isEmpty else { return false }
    if named.allSatisfy(codings.contains) { return true }
    // The last coding was applied last, so the body starts with its bytes.
    let isKnown = mayDecodeZstandard && named.last == "zstd" && named.dropLast().allSatisfy(codings.contains)
    return isKnown ? nil : false
  }

  /// The number of bytes that ``isZstandard(_:)`` needs.
  static let startLength = 4

  /// Whether the first bytes of a body are those of a zstd frame or of a skippable frame (RFC 8878 §3.1).
  static func isZstandard(_ start: some Collection<UInt8>) -> Bool {
    let start = Array(start.prefix(startLength))
    return start == [0x28, 0xB5, 0x2F, 0xFD] || start.count == 4 && start[0] & 0xF0 == 0x50 && start[1...] == [0x2A, 0x4D, 0x18]
  }
}

/// A platform response converted to a head that describes the bytes to be delivered.
struct ReceivedHead {
  /// The status and the fields.
  private(set) var response: HTTPResponse
  /// The number of bytes to be delivered, or `nil` if it is unknown.
  let bodyLength: Int64?
  /// The encoded size of the body in bytes, or `nil` if it is unknown or equal to ``bodyLength``.
  private(set) var encodedLength: Int64?
  /// Whether the head is correct only after ``decide(by:)``.
  private(set) var needsStart = false

  /// - Parameters:
  ///   - method: The method of the request. A response to HEAD has no body.
  ///   - lacksBody: Whether the platform discarded the body.
  ///   - decoding: The codings that the platform decodes.
  init?(
    _ platform: HTTPURLResponse, method: HTTPRequest.Method, lacksBody: Bool = false, decoding: PlatformDecoding = .current
  ) {
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
    } else {
      let isDecoded = decoding.decodes(fields[.contentEncoding])
      let mayBeDecoded = isDecoded != false || decoding.mayDecodeOthers && fields[.contentEncoding] != nil
      bodyLength = mayBeDecoded ? nil : length
      // A part of a body, or several parts, need not start with a frame.
      needsStart = isDecoded == nil && status != 206
      if isDecoded == true {
        fields[.contentEncoding] = nil
        fields[.contentLength] = nil
        encodedLength = length
      }
    }
    response = HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
  }

  /// Returns the head of an interim response, which has no body.
  static func interim(_ platform: HTTPURLResponse) -> HTTPResponse {
    HTTPResponse(status: HTTPResponse.Status(code: platform.statusCode), headerFields: fields(of: platform))
  }

  /// Decides by the first bytes of the body, or by all of a shorter one, whether the platform has decoded it.
  ///
  /// - Parameter isCut: Whether the body ended with an error. A body that is too short for a decision then keeps its field.
  mutating func decide(by start: some Collection<UInt8>, isCut: Bool = false) {
    guard needsStart else { return }
    needsStart = false
    let isTooShort = isCut && start.count < PlatformDecoding.startLength
    guard !isTooShort, !PlatformDecoding.isZstandard(start) else { return }
    encodedLength = response.headerFields.contentLength
    response.headerFields[.contentEncoding] = nil
    response.headerFields[.contentLength] = nil
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
