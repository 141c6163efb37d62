import CacheCore
import HTTPServing
import HTTPTypes
import NIOCore

/// The responder of a port. It removes the fields about the connection, gives the host its normal form, turns errors into
/// responses, and records every response.
struct RecordingResponder: HTTPResponder {
  let next: any Responder
  /// The recorder of every response.
  let traffic: Traffic
  let clock: any CacheClock

  /// The fields that the forwarded request states by itself, and the expectation that the server has met.
  private static let dropped = ["Host", "Content-Length", "Expect"].compactMap { HTTPField.Name($0) }

  func respond(to request: ServerRequest) async -> ServerResponse {
    let begun = NIODeadline.now()
    var forwarded = request
    forwarded.head.headerFields = request.head.headerFields.endToEnd()
    for name in Self.dropped { forwarded.head.headerFields[name] = nil }
    // The cache, the origin and `X-Forwarded-Host` see one form of the host. Otherwise the spelling of one client would decide
    // the response that other clients get from the cache.
    forwarded.head.authority = ResourceID.authority(of: request.head)
    let answer: ProxyAnswer
    do throws(CacheError) {
      answer = try await next.respond(to: forwarded)
    } catch {
      answer = ProxyAnswer(error, at: clock.now)
    }
    return recorded(answer, request, from: request.peer, since: begun)
  }

  func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse {
    recorded(ProxyAnswer(CacheError(refusal), at: clock.now), nil, from: peer, since: .now())
  }

  private func recorded(
    _ answer: ProxyAnswer, _ request: ServerRequest?, from peer: SocketAddress?, since begun: NIODeadline
  ) -> ServerResponse {
    var response = ServerResponse(head: answer.head, body: answer.body)
    response.closes = answer.closes
    response.onFailure = { error in recorded(ProxyAnswer(error, at: clock.now), request, from: peer, since: begun) }
    response.onEnd = { [traffic] delivery in
      traffic.record(
        TrafficRecord(
          peer: peer, request: request, status: answer.head.status.code, outcome: answer.outcome,
          bodyBytes: delivery.bodyBytes, isComplete: delivery.isComplete, duration: NIODeadline.now() - begun))
    }
    return response
  }
}
