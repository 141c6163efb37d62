import CacheCore
import HTTPTypes

/// A check for responses that make no sense for their request. Such a response is neither stored nor forwarded. The client gets
/// 502 with the reason.
struct AnswerCheck {
  /// The request that was sent to the origin.
  let request: HTTPRequest

  func check(_ response: HTTPResponse) throws(CacheError) {
    switch response.status.code {
    case 100..<200:
      // `Upgrade` is not forwarded, so the origin has no reason to switch protocols (RFC 9110 §15.2.2).
      throw broken("an interim response (\(response.status.code)) instead of a final one", response)
    case 304 where !isConditional:
      throw broken("304 to a request without a condition", response)  // RFC 9110 §15.4.5
    case 206 where request.headerFields[.range] == nil:
      throw broken("206 to a request without a range", response)  // RFC 9110 §15.3.7
    default: break
    }
  }

  private var isConditional: Bool {
    let fields = request.headerFields
    return fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince) || fields.contains(.ifMatch)
      || fields.contains(.ifUnmodifiedSince) || fields.contains(.ifRange)
  }

  private func broken(_ reason: String, _ response: HTTPResponse) -> CacheError {
    CacheError(.malformedResponse, reason: "the origin sent \(reason)", response: response)
  }
}
