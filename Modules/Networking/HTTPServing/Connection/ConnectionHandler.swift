#if Server
import CacheCore
import HTTPTypes
import NIOCore
import NIOPosix

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Glibc)
import Glibc
#endif

/// The handler of one client connection. It reads requests one after another, and serves each with a task on the connection's
/// event loop.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  enum Phase {
    case awaitingHead
    case serving(Serving)
    /// A refusal is being written. Further bytes are dropped.
    case refusing
    /// The last response was sent. Further bytes are dropped.
    case lingering
    case closed
  }

  /// The request that is being served.
  struct Serving {
    let body: IncomingBody?
    let task: Task<Void, Never>
    /// Whether the client waits for "100 Continue".
    var awaitsContinue: Bool
    /// Whether the last byte of the request has arrived.
    var isComplete = false
    /// Whether the response was sent before the last byte of the request arrived.
    var respondedEarly = false
    /// The number of body bytes that were dropped.
    var drained = 0
  }

  private let responder: any HTTPResponder
  private let settings: ConnectionSettings
  private let channel: any Channel
  private let executor: EventLoopExecutor
  private var parser: RequestParser
  private var phase = Phase.awaitingHead
  private var isQuiescing = false
  private var inputIsClosed = false
  /// Whether no further request will be read.
  private var isLast = false
  private var isProceeding = false
  /// Whether the deadline for the rest of a request head is set.
  private var headHasBegun = false
  /// The number of requests that were begun.
  private var requests = 0
  /// The number of the request whose client may get interim responses, or `nil` for none.
  private var interimRequest: Int?
  private let waitingInterim = InterimCount()
  private let timer: ConnectionTimer

  init(_ responder: any HTTPResponder, _ settings: ConnectionSettings, channel: any Channel) {
    (self.responder, self.settings) = (responder, settings)
    self.channel = channel
    executor = EventLoopExecutor(channel.eventLoop)
    parser = RequestParser(limits: settings.limits)
    timer = ConnectionTimer(channel.eventLoop)
  }

  // MARK: Channel events

  func channelActive(context: ChannelHandlerContext) {
    timer.onTime = { [weak self] in self?.ranOutOfTime() }
    timer.set(.read, in: nextRequestTime)
    channel.read()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch phase {
    case .awaitingHead, .serving: parser.append(unwrapInboundIn(data))
    case .refusing, .lingering, .closed: break
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) { proceed() }

  func channelInactive(context: ChannelHandlerContext) { end() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case is ChannelShouldQuiesceEvent: quiesce()
    case ChannelEvent.inputClosed: closeInput()
    default: break
    }
  }

  // MARK: Requests

  /// Processes all bytes that have arrived, then reads more if they are wanted.
  private func proceed() {
    // If a task finishes without suspending, this function is called recursively. The loop below continues instead.
    guard !isProceeding else { return }
    isProceeding = true
    while processNextPart() {}
    isProceeding = false
    readIfWanted()
  }

  private func processNextPart() -> Bool {
    switch phase {
    case .awaitingHead: break
    case .serving(let serving): if serving.isComplete { return false }
    case .refusing, .lingering, .closed: return false
    }
    do {
      guard let part = try parser.next() else { return false }
      switch part {
      case .head(let head): begin(head)
      case .body(let bytes): receive(bytes)
      case .end: completeRequest()
      }
      return true
    } catch {
      refuse(error)
      return false
    }
  }

  private func begin(_ head: RequestHead) {
    stopReadDeadline()
    let (eventLoop, this) = (channel.eventLoop, NIOLoopBound(self, eventLoop: channel.eventLoop))
    let body =
      head.framing == .noBody ? nil : IncomingBody(onDemand: { eventLoop.execute { this.value.readerWantsBody() } })
    requests += 1
    interimRequest = requests
    let request = ServedRequest(
      head: head, body: body, connection: this, channel: channel, responder: responder,
      interim: InterimSender(connection: this, eventLoop: eventLoop, number: requests, waiting: waitingInterim))
    phase = .serving(
      Serving(
        body: body, task: Task(executorPreference: executor) { await request.run() },
        awaitsContinue: head.expectsContinue && body != nil))
  }

  private func receive(_ bytes: ByteBuffer) {
    guard case .serving(var serving) = phase else { return }
    // The rest of an unwanted body has one deadline, so that a client cannot keep the connection open byte by byte.
    if !serving.respondedEarly { timer.clear(.read) }
    // A client that sends its body does not wait for "100 Continue".
    serving.awaitsContinue = false
    if serving.body?.push(bytes) == false { serving.drained += bytes.readableBytes }
    phase = .serving(serving)
  }

  private func completeRequest() {
    guard case .serving(var serving) = phase else { return }
    stopReadDeadline()
    serving.body?.finish()
    serving.isComplete = true
    phase = .serving(serving)
    if serving.respondedEarly { awaitHead() }
  }

  private func readerWantsBody() {
    guard case .serving(var serving) = phase, !serving.isComplete else { return }
    if serving.awaitsContinue, !serving.respondedEarly {
      serving.awaitsContinue = false
      phase = .serving(serving)
      channel.writeAndFlush(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"), promise: nil)
    }
    readIfWanted()
  }

  private func readIfWanted() {
    switch phase {
    case .awaitingHead:
      // No more bytes can arrive, and the received ones are not a complete request.
      guard !inputIsClosed else { return channel.close(promise: nil) }
      beginHead()
    case .serving(let serving) where serving.isComplete:
      // This read may already fetch the next request. Stopping and restarting the reads would cost two system calls.
      guard parser.unreadBytes == 0 else { return }
    case .serving(let serving):
      guard let body = serving.body, body.wantsMore else { return }
      if serving.drained > settings.drainLimit {
        if serving.respondedEarly { finish() }
        return
      }
      // Only bytes of the body end the deadline. The bytes of chunk sizes and trailers do not.
      timer.start(.read, in: settings.clientTimeout)
    case .refusing, .lingering: break
    case .closed: return
    }
    if !inputIsClosed { channel.read() }
  }

  /// Sets the deadline of a head when its first byte has arrived. Empty lines before a request are not a part of it, so they do
  /// not extend the time for which a connection is idle.
  private func beginHead() {
    guard !headHasBegun, !parser.isAtStart else { return }
    headHasBegun = true
    timer.set(.read, in: settings.clientTimeout)
  }

  /// Refuses a request that is invalid or too late. The bytes after it are not parsed.
  private func refuse(_ refusal: RequestRefusal) {
    isLast = true
    switch phase {
    case .awaitingHead:
      phase = .refusing
      setWriteDeadline(isActive: true)
      ServedRequest.refuse(refusal, channel: channel, responder: responder).assumeIsolated().whenComplete { _ in
        self.setWriteDeadline(isActive: false)
        if case .refusing = self.phase { self.finish() }
      }
    case .serving(let serving):
      serving.body?.fail(CacheError(refusal))
      if serving.respondedEarly { finish() }
    case .refusing, .lingering, .closed: break
    }
  }

  // MARK: Responses

  var headDelay: TimeAmount { settings.headDelay }

  /// Sends an interim response to the client of a request, if it still waits for the response and reads what it is sent. No
  /// client can thus make the connection buffer what a server repeats.
  func sendInterim(_ response: HTTPResponse, to request: Int) {
    guard interimRequest == request, channel.isActive, channel.isWritable else { return }
    var buffer = channel.allocator.buffer(capacity: 512)
    ResponseHeadWriter(framing: .noContent, keepsAlive: true, isHTTP10: false)
      .write(HTTPResponse(status: response.status, headerFields: response.headerFields.endToEnd()), to: &buffer)
    channel.writeAndFlush(buffer, promise: nil)
    didWrite()
  }

  /// Sends no more interim responses, because the final response begins.
  func endInterim() { interimRequest = nil }

  /// Returns whether another request may follow on this connection, as far as is known when the response starts.
  func keepsAlive(after head: RequestHead) -> Bool {
    guard case .serving(let serving) = phase, head.keepsAlive, !isQuiescing, allowsNextRequest else { return false }
    // A client that got no "100 Continue" may or may not send its body (RFC 9110 §10.1.1).
    return serving.isComplete || !serving.awaitsContinue && serving.drained <= settings.drainLimit
  }

  private var allowsNextRequest: Bool { !isLast && (!inputIsClosed || !parser.isAtStart) }

  /// Continues after a complete response: with the next request, or by closing the connection.
  ///
  /// A shutdown that began after the head does not close a connection whose head has promised to stay open: the client may have
  /// sent its next request already.
  func didRespond(keepsAlive: Bool) {
    guard case .serving(var serving) = phase else { return }
    timer.clear(.write)
    serving.body?.cancel()
    guard keepsAlive, allowsNextRequest else { return finish() }
    if serving.isComplete { return awaitHead() }
    // The next request follows the rest of this body, which is read and dropped up to the limit.
    serving.respondedEarly = true
    phase = .serving(serving)
    timer.set(.read, in: nextRequestTime)
    proceed()
  }

  /// Closes the connection with a reset, because the client must not take a truncated response for a complete one.
  func abort() {
    channel.resetOnClose()
    channel.close(promise: nil)
  }

  /// Starts or stops the deadline for a write that waits for the client.
  func setWriteDeadline(isActive: Bool) {
    if isActive { timer.set(.write, in: settings.clientTimeout) } else { timer.clear(.write) }
  }

  private func awaitHead() {
    phase = .awaitingHead
    headHasBegun = false
    timer.set(.read, in: nextRequestTime)
    proceed()
  }

  /// The time for which the connection waits for a request.
  private var nextRequestTime: TimeAmount { isQuiescing ? settings.shutdownIdleTime : settings.clientTimeout }

  /// Closes the connection after the last response. If the client may still be sending, only the output is closed at first,
  /// because a reset could overtake the response (RFC 9112 §9.6).
  private func finish() {
    let clientMaySend: Bool
    if case .serving(let serving) = phase {
      clientMaySend = !serving.isComplete || !parser.isAtStart
    } else {
      clientMaySend = true
    }
    guard clientMaySend, !inputIsClosed else { return channel.close(promise: nil) }
    phase = .lingering
    parser = RequestParser(limits: settings.limits)
    timer.set(.read, in: settings.lingerTime)
    channel.close(mode: .output, promise: nil)
    channel.read()
  }

  // MARK: Shutdown

  private func quiesce() {
    isQuiescing = true
    // The socket may already have a request that was not read yet. Closing now would leave it without a response.
    if case .awaitingHead = phase, parser.isAtStart { timer.set(.read, in: settings.shutdownIdleTime) }
  }

  private func closeInput() {
    inputIsClosed = true
    proceed()
    switch phase {
    case .lingering: channel.close(promise: nil)
    case .serving(let serving) where !serving.isComplete: refuse(.malformed("the connection closed before the end of the body"))
    case .serving: stopReadDeadline()
    case .awaitingHead, .refusing, .closed: break
    }
  }

  /// Stops waiting for bytes of the client, because its request is complete.
  ///
  /// A client that has closed its side may wait for the response or may be gone. Only a write shows which. So a deadline limits
  /// the time without a write.
  private func stopReadDeadline() {
    if inputIsClosed { timer.set(.read, in: settings.halfClosedTime) } else { timer.clear(.read) }
  }

  /// Notes that bytes of a response were written.
  func didWrite() {
    if inputIsClosed, case .serving(let serving) = phase, serving.isComplete { stopReadDeadline() }
  }

  private func end() {
    if case .serving(let serving) = phase {
      serving.body?.fail(.cancelled)
      serving.task.cancel()
    }
    phase = .closed
    timer.stop()
  }

  private func ranOutOfTime() {
    guard !timer.isDue(.write) else { return abort() }
    timer.clear(.read)
    switch phase {
    case .awaitingHead where parser.isAtStart: channel.close(promise: nil)
    case .awaitingHead: refuse(RequestRefusal(status: .requestTimeout, reason: "the request head did not arrive in time"))
    // A write that waits for the client has a deadline of its own.
    case .serving(let serving) where serving.isComplete: if !timer.isSet(.write) { abort() }
    case .serving: refuse(RequestRefusal(status: .requestTimeout, reason: "the request body did not arrive in time"))
    case .lingering: channel.close(promise: nil)
    case .refusing, .closed: break
    }
  }
}

extension Channel {
  /// Makes the connection end with a reset. If the end of the connection is the end of the body, a normal close would make a
  /// truncated response look complete.
  func resetOnClose() {
    guard let socket = self as? any SocketOptionProvider else { return }
    _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
  }
}
#endif
