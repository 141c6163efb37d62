#if Server
import CacheCore
import HTTPTypes
import NIOCore
import Synchronization

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
  let interim: InterimSender

  /// Serves the request, and tells the connection whether the response was sent completely.
  func run() async {
    var response = await responder.respond(to: request)
    connection.value.endInterim()
    var (delivery, mayContinue) = await send(response)
    if !delivery.hasBegun, channel.isActive, let error = delivery.error, let instead = response.onFailure?(error) {
      response = instead
      (delivery, mayContinue) = await send(response)
    }
    response.onEnd?(delivery)
    if delivery.isComplete {
      connection.value.didRespond(keepsAlive: mayContinue)
    } else {
      connection.value.abort()
    }
  }

  /// Sends a response. Also returns whether its head promised that the connection stays open.
  private func send(_ response: ServerResponse) async -> (ServerResponse.Delivery, mayContinue: Bool) {
    let keepsAlive = !response.closes && connection.value.keepsAlive(after: head)
    let framing = ResponseFraming(
      method: head.request.method, status: response.head.status, length: response.body.length, isHTTP10: head.isHTTP10)
    let writer = ResponseWriter(
      channel: channel, connection: connection,
      headWriter: ResponseHeadWriter(framing: framing, keepsAlive: keepsAlive, isHTTP10: head.isHTTP10),
      sendsTrailers: head.acceptsTrailers, headDelay: connection.value.headDelay)
    let mayContinue = keepsAlive && framing != .untilClose
    return (await writer.write(response, waitsForClient: !mayContinue), mayContinue)
  }

  private var request: ServerRequest {
    var length: Int64?
    if case .length(let announced) = head.framing { length = announced }
    var request = ServerRequest(
      head: head.request,
      body: body.map { ResourceBody(length: length, source: $0) }, peer: channel.remoteAddress, target: head.rawTarget,
      isHTTP10: head.isHTTP10)
    request.interim = interim
    return request
  }

  /// Responds to a refused request. The future ends when the system has the response.
  static func refuse(
    _ refusal: RequestRefusal, channel: any Channel, responder: any HTTPResponder
  ) -> EventLoopFuture<Void> {
    let response = responder.respond(to: refusal, peer: channel.remoteAddress)
    let data = response.body.data ?? Data()
    var buffer = channel.allocator.buffer(capacity: 512)
    ResponseHeadWriter(framing: .length(Int64(data.count)), keepsAlive: false, isHTTP10: false)
      .write(response.head, to: &buffer)
    buffer.writeBytes(data)
    return channel.writeAndFlush(buffer).always { result in
      let isSent = if case .success = result { true } else { false }
      response.onEnd?(ServerResponse.Delivery(bodyBytes: isSent ? Int64(data.count) : 0, isComplete: isSent))
    }
  }
}

/// The sender of interim responses to the client of one request.
struct InterimSender: Sendable {
  /// The number of interim responses to one client that may wait for its event loop. An origin can repeat them without an end.
  static let waitingLimit = 8

  let connection: NIOLoopBound<ConnectionHandler>
  let eventLoop: any EventLoop
  /// The number of the request on its connection.
  let number: Int
  /// The number of interim responses that wait for the event loop.
  let waiting: InterimCount

  func send(_ response: HTTPResponse) {
    // A responder that runs on the event loop may respond before it leaves it.
    guard !eventLoop.inEventLoop else { return connection.value.sendInterim(response, to: number) }
    guard waiting.enter(limit: Self.waitingLimit) else { return }
    eventLoop.execute {
      waiting.leave()
      connection.value.sendInterim(response, to: number)
    }
  }
}

/// The number of interim responses of one connection that wait for its event loop.
final class InterimCount: Sendable {
  private let count = Atomic<Int>(0)

  /// Returns whether another one may wait.
  func enter(limit: Int) -> Bool {
    guard count.wrappingAdd(1, ordering: .relaxed).newValue > limit else { return true }
    leave()
    return false
  }

  func leave() { count.wrappingSubtract(1, ordering: .relaxed) }
}

/// An executor that runs tasks on one event loop. A request is served by the thread that reads and writes its connection, without
/// thread switches and without lock contention.
final class EventLoopExecutor: TaskExecutor {
  private let eventLoop: any EventLoop

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
#endif
