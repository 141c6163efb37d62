#if Gateway
import CacheCore
import HTTPTypes
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One request and its response. It runs on the connection's event loop.
struct Exchange: Sendable {
  let head: RequestHead
  let body: RequestBody?
  let connection: NIOLoopBound<ConnectionHandler>
  let channel: any Channel
  let service: ConnectionService

  /// Serves the request, and tells the connection whether the response was sent completely.
  func run() async {
    let begun = NIODeadline.now()
    let answer = await answer()
    let keepsAlive = !answer.closes && connection.value.keepsAlive(after: head)
    let status = answer.head.status
    let framing = ResponseFraming(
      method: head.method, status: status, length: answer.body.length, isHTTP10: head.isHTTP10)
    let writer = AnswerWriter(
      channel: channel, connection: connection,
      headWriter: ResponseHeadWriter(
        framing: framing, keepsAlive: keepsAlive && framing != .untilClose, isHTTP10: head.isHTTP10),
      sendsTrailers: head.acceptsTrailers)
    let sent = await writer.write(answer)
    service.traffic.record(
      TrafficRecord(
        peer: channel.remoteAddress, request: head, status: status.code, outcome: answer.outcome,
        bodyBytes: sent.bodyBytes, isComplete: sent.isComplete, duration: NIODeadline.now() - begun))
    if sent.isComplete {
      connection.value.didAnswer(keepsAlive: keepsAlive && framing != .untilClose)
    } else {
      connection.value.abort()
    }
  }

  private func answer() async -> ProxyAnswer {
    do {
      return try await service.responder.respond(to: request)
    } catch {
      return ProxyAnswer(error, at: service.clock.now)
    }
  }

  private var request: ProxyRequest {
    var length: Int64?
    if case .length(let announced) = head.framing { length = announced }
    return ProxyRequest(
      head: HTTPRequest(
        method: head.method, scheme: "http", authority: head.target.authority, path: head.target.path,
        headerFields: head.fields.endToEnd { $0 == "host" || $0 == "content-length" || $0 == "expect" }),
      body: body.map { ResourceBody(length: length, source: $0) }, peer: channel.remoteAddress)
  }

  /// Responds to bytes that are not a valid request.
  static func refuse(_ refusal: RequestRefusal, channel: any Channel, service: ConnectionService) {
    let answer = ProxyAnswer(CacheError(refusal), at: service.clock.now)
    let data = answer.body.data ?? Data()
    var buffer = channel.allocator.buffer(capacity: 512)
    ResponseHeadWriter(framing: .length(Int64(data.count)), keepsAlive: false, isHTTP10: false)
      .write(answer.head, to: &buffer)
    buffer.writeBytes(data)
    channel.writeAndFlush(buffer, promise: nil)
    service.traffic.record(
      TrafficRecord(
        peer: channel.remoteAddress, request: nil, status: refusal.status.code, outcome: .local, bodyBytes: Int64(data.count),
        isComplete: true, duration: .zero))
  }
}
#endif
