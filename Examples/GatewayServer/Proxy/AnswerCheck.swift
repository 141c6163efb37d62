#if Gateway
import CacheCore
import HTTPTypes

/// What no origin may answer, since nobody could make sense of it. Such an answer is neither stored nor passed on: the client
/// gets 502 with the reason.
struct AnswerCheck {
  /// What the origin was asked.
  let request: HTTPRequest

  func check(_ response: HTTPResponse) throws(CacheError) {
    switch response.status.code {
    case 100..<200:
      // Nobody asked for another protocol: `Upgrade` is not passed on (RFC 9110 §15.2.2).
      throw broken("an interim answer (\(response.status.code)) in place of a final one", response)
    case 304 where !isConditional:
      throw broken("304 to a request without a condition", response)  // RFC 9110 §15.4.5
    case 206 where request.headerFields[.range] == nil:
      throw broken("206 to a request without a range", response)  // RFC 9110 §15.3.7
    default: break
    }
    guard Set(response.headerFields[values: .contentLength].flatMap(Self.members)).count <= 1 else {
      throw broken("more than one Content-Length", response)  // RFC 9112 §6.3
    }
  }

  private var isConditional: Bool {
    let fields = request.headerFields
    return fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince) || fields.contains(.ifMatch)
      || fields.contains(.ifUnmodifiedSince) || fields.contains(.ifRange)
  }

  private static func members(_ value: String) -> [Substring] { value.split(separator: ",").map { $0.trimmingBlanks() } }

  private func broken(_ reason: String, _ response: HTTPResponse) -> CacheError {
    CacheError(.malformedResponse, reason: "the origin answered \(reason)", status: response.status.code)
  }
}
#endif
