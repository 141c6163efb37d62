#if AsyncHTTP
internal import CacheCore
internal import HTTPTypes
internal import NIOHTTP1

/// The head of a response and the length of its body.
struct ReceivedHead: Sendable {
  /// The status and the fields.
  let response: HTTPResponse
  /// The number of body bytes, or `nil` if the head does not say.
  let bodyLength: Int64?
  /// The name of the protocol in ALPN (RFC 7301).
  let protocolName: String

  /// - Parameters:
  ///   - status: The status code.
  ///   - version: The version of the protocol.
  ///   - headers: The received headers.
  ///   - method: The method of the request. A response to HEAD has no body.
  /// - Throws: `CacheError.Code.malformedResponse` for an invalid status, which traps in HTTPTypes. The connections of
  ///   a caller's client may have no ``ResponseGuard``.
  init(status: Int, version: HTTPVersion, headers: HTTPHeaders, method: HTTPRequest.Method) throws(CacheError) {
    if let error = ResponseGuard.refusal(ofStatus: status) { throw error }
    let fields = HTTPFields(received: headers)
    response = HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)
    protocolName = version.major == 2 ? "h2" : "http/\(version.major).\(version.minor)"
    if method == .head || status == 204 || status == 304 {
      // `Content-Length` stays in the fields, because it describes the response to GET (RFC 9110 §8.6).
      bodyLength = 0
    } else if fields.contains(.transferEncoding) {
      bodyLength = nil
    } else {
      bodyLength = fields.contentLength
    }
  }
}
#endif
