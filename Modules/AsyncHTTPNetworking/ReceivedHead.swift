#if AsyncHTTP
internal import HTTPTypes
internal import NIOHTTP1

/// An answer's head as it came, and what it tells of the body.
struct ReceivedHead: Sendable {
  /// Status and fields.
  let response: HTTPResponse
  /// Body bytes that are going to come; nil where the head does not tell.
  let bodyLength: Int64?
  /// The protocol's name as ALPN has it (RFC 7301).
  let protocolName: String

  /// - Parameters:
  ///   - status: the status code.
  ///   - version: the protocol's.
  ///   - headers: as they came.
  ///   - method: what was asked: an answer to HEAD has no body.
  init(status: Int, version: HTTPVersion, headers: HTTPHeaders, method: HTTPRequest.Method) {
    let fields = HTTPFields(received: headers)
    response = HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
    protocolName = version.major == 2 ? "h2" : "http/\(version.major).\(version.minor)"
    if method == .head || status == 204 || status == 304 {
      // `Content-Length` stays in the fields: it tells what GET would bring (RFC 9110 §8.6).
      bodyLength = 0
    } else if fields.contains(.transferEncoding) {
      bodyLength = nil
    } else {
      bodyLength = fields[.contentLength].flatMap(Self.length)
    }
  }

  /// Repeated and equal lengths are one length (RFC 9110 §8.6); anything else is none.
  private static func length(_ value: String) -> Int64? {
    if let length = Int64(value), length >= 0 { return length }
    let values = Set(value.split(separator: ",").map { $0.drop(while: \.isWhitespace) })
    guard values.count == 1, let text = values.first, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text)
  }
}
#endif
