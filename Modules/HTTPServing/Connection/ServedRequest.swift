#if Service
import CacheCore
import HTTPTypes
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One request and its response. It runs on the connection's event loop.
struct ServedRequest: Sendable {
  let head: RequestHead
  let body: IncomingBody?
  let connection: NIOLoopBound<ConnectionHandler>
  let channel: any Channel
  let responder: any HTTPResponder

  /// Serves the request, and tells the connection whether the response was sent completely.
  func run() async {
    let response = await responder.respond(to: request)
    let keepsAlive = !response.closes && connection.value.keepsAlive(after: head)
    let framing = ResponseFraming(
      method: head.method, status: response.head.status, length: response.body.length, isHTTP10: head.isHTTP10)
    let writer = ResponseWriter(
      channel: channel, connection: connection,
      headWriter: ResponseHeadWriter(
        framing: framing, keepsAlive: keepsAlive && framing != .untilClose, isHTTP10: head.isHTTP10),
      sendsTrailers: head.acceptsTrailers)
    let delivery = await writer.write(response)
    response.onEnd?(delivery)
    if delivery.isComplete {
      connection.value.didRespond(keepsAlive: keepsAlive && framing != .untilClose)
    } else {
      connection.value.abort()
    }
  }

  private var request: ServerRequest {
    var length: Int64?
    if case .length(let announced) = head.framing { length = announced }
    return ServerRequest(
      head: HTTPRequest(
        method: head.method, scheme: "http", authority: head.target.authority, path: head.target.path,
        headerFields: head.fields.endToEnd { $0 == "host" || $0 == "content-length" || $0 == "expect" }),
      body: body.map { ResourceBody(length: length, source: $0) }, peer: channel.remoteAddress, target: head.rawTarget,
      isHTTP10: head.isHTTP10)
  }

  /// Responds to bytes that are not a valid request.
  static func refuse(_ refusal: RequestRefusal, channel: any Channel, responder: any HTTPResponder) {
    let response = responder.respond(to: refusal, peer: channel.remoteAddress)
    let data = response.body.data ?? Data()
    var buffer = channel.allocator.buffer(capacity: 512)
    ResponseHeadWriter(framing: .length(Int64(data.count)), keepsAlive: false, isHTTP10: false)
      .write(response.head, to: &buffer)
    buffer.writeBytes(data)
    channel.writeAndFlush(buffer, promise: nil)
    response.onEnd?(ServerResponse.Delivery(bodyBytes: Int64(data.count), isComplete: true))
  }
}
#endif
