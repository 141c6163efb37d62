#if Gateway
import CacheCore
import HTTPTypes
import NIOCore
import NIOExtras

/// One connection of a client: requests come in, one after the other, and each is served by a task on the connection's own event
/// loop.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  enum Phase {
    case awaitingHead
    case serving(Serving)
    /// The last answer is out; what still comes is thrown away.
    case lingering
    case closed
  }

  /// The request that is being served.
  struct Serving {
    let body: RequestBody?
    let task: Task<Void, Never>
    /// Whether the client waits for "100 Continue".
    var awaitsContinue: Bool
    /// Whether its last byte has come.
    var isComplete = false
    /// Whether the answer is out, ahead of the last byte.
    var isAnswered = false
    /// Bytes of the body that nobody wanted.
    var drained = 0
  }

  let service: ConnectionService
  let channel: any Channel
  private let executor: EventLoopExecutor
  private var parser: RequestParser
  private var phase = Phase.awaitingHead
  private var isQuiescing = false
  private var inputIsClosed = false
  /// Whether no further request is read.
  private var isLast = false
  private var isProceeding = false
  private let timer: ConnectionTimer

  init(_ service: ConnectionService, channel: any Channel) {
    self.service = service
    self.channel = channel
    executor = EventLoopExecutor(channel.eventLoop)
    parser = RequestParser(limits: service.limits)
    timer = ConnectionTimer(channel.eventLoop)
  }

  // MARK: The channel's events

  func channelActive(context: ChannelHandlerContext) {
    timer.onTime = { [weak self] in self?.ranOutOfTime() }
    timer.set(.read, in: service.clientTimeout)
    channel.read()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .awaitingHead = phase, parser.isAtStart { timer.set(.read, in: service.clientTimeout) }
    switch phase {
    case .awaitingHead, .serving: parser.append(unwrapInboundIn(data))
    case .lingering, .closed: break
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

  /// Goes on as far as what has come allows, then asks for more where more is wanted.
  private func proceed() {
    // A request that is answered before its task waits for anything comes back here: the loop below goes on.
    guard !isProceeding else { return }
    isProceeding = true
    while takePart() {}
    isProceeding = false
    readIfWanted()
  }

  private func takePart() -> Bool {
    switch phase {
    case .awaitingHead: break
    case .serving(let serving): if serving.isComplete { return false }
    case .lingering, .closed: return false
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
    expectNothing()
    let (eventLoop, this) = (channel.eventLoop, NIOLoopBound(self, eventLoop: channel.eventLoop))
    let body =
      head.framing == .none ? nil : RequestBody(onDemand: { eventLoop.execute { this.value.bodyIsWanted() } })
    let exchange = Exchange(head: head, body: body, connection: this, channel: channel, service: service)
    phase = .serving(
      Serving(
        body: body, task: Task(executorPreference: executor) { await exchange.run() },
        awaitsContinue: head.expectsContinue && body != nil))
  }

  private func receive(_ bytes: ByteBuffer) {
    guard case .serving(var serving) = phase else { return }
    // A client that sends its body waits for no word.
    serving.awaitsContinue = false
    if serving.body?.push(bytes) == false { serving.drained += bytes.readableBytes }
    phase = .serving(serving)
  }

  private func completeRequest() {
    guard case .serving(var serving) = phase else { return }
    expectNothing()
    serving.body?.finish()
    serving.isComplete = true
    phase = .serving(serving)
    if serving.isAnswered { awaitHead() }
  }

  private func bodyIsWanted() {
    guard case .serving(var serving) = phase, !serving.isComplete else { return }
    if serving.awaitsContinue, !serving.isAnswered {
      serving.awaitsContinue = false
      phase = .serving(serving)
      channel.writeAndFlush(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"), promise: nil)
    }
    readIfWanted()
  }

  private func readIfWanted() {
    switch phase {
    case .awaitingHead:
      // Nothing more can come, and what is there is no request.
      guard !inputIsClosed else { return channel.close(promise: nil) }
    case .serving(let serving) where serving.isComplete:
      // The next request may come meanwhile, as much of it as one read brings: to stop looking and begin again with each request
      // would be two system calls more.
      guard parser.unreadBytes == 0 else { return }
    case .serving(let serving):
      guard let body = serving.body, body.wantsMore else { return }
      if serving.drained > service.drainLimit {
        if serving.isAnswered { finish() }
        return
      }
      timer.set(.read, in: service.clientTimeout)
    case .lingering: break
    case .closed: return
    }
    if !inputIsClosed { channel.read() }
  }

  /// What came is no request, or it did not come in time: whatever follows it is not read as one.
  private func refuse(_ refusal: RequestRefusal) {
    isLast = true
    switch phase {
    case .awaitingHead:
      Exchange.refuse(refusal, channel: channel, service: service)
      finish()
    case .serving(let serving):
      serving.body?.fail(CacheError(refusal))
      if serving.isAnswered { finish() }
    case .lingering, .closed: break
    }
  }

  // MARK: Answers

  /// Whether another request may follow on this connection, as far as it can be told when an answer begins.
  func keepsAlive(after head: RequestHead) -> Bool {
    guard case .serving(let serving) = phase, head.keepsAlive, mayGoOn else { return false }
    // Whether a client that was not told to go on still sends its body is anybody's guess (RFC 9110 §10.1.1).
    return serving.isComplete || !serving.awaitsContinue && serving.drained <= service.drainLimit
  }

  private var mayGoOn: Bool { !isLast && !isQuiescing && (!inputIsClosed || !parser.isAtStart) }

  /// The answer is out.
  func didAnswer(keepsAlive: Bool) {
    guard case .serving(var serving) = phase else { return }
    timer.clear(.write)
    serving.body?.cancel()
    guard keepsAlive, mayGoOn else { return finish() }
    if serving.isComplete { return awaitHead() }
    // The rest of the body is in the way of the next request: it is read away, if it is not too much.
    serving.isAnswered = true
    phase = .serving(serving)
    proceed()
  }

  /// The answer can't be brought to its end, and the client must not take what it has for the whole.
  func abort() {
    channel.resetOnClose()
    channel.close(promise: nil)
  }

  /// Something is being written that the client has to take.
  func awaitsClient(_ isWaiting: Bool) {
    if isWaiting { timer.set(.write, in: service.clientTimeout) } else { timer.clear(.write) }
  }

  private func awaitHead() {
    phase = .awaitingHead
    timer.set(.read, in: service.clientTimeout)
    proceed()
  }

  /// Closes behind the last answer. Where the client may still be sending, only our side at first: a reset would overtake the
  /// answer (RFC 9112 §9.6).
  private func finish() {
    let mayComeMore: Bool
    if case .serving(let serving) = phase { mayComeMore = !serving.isComplete || !parser.isAtStart } else { mayComeMore = true }
    guard mayComeMore, !inputIsClosed else { return channel.close(promise: nil) }
    phase = .lingering
    parser = RequestParser(limits: service.limits)
    timer.set(.read, in: service.lingerTime)
    channel.close(mode: .output, promise: nil)
    channel.read()
  }

  // MARK: The end

  private func quiesce() {
    isQuiescing = true
    // A request may be here already that nobody has read: an end now would be its only answer.
    if case .awaitingHead = phase, parser.isAtStart { timer.set(.read, in: service.lastCallTime) }
  }

  private func closeInput() {
    inputIsClosed = true
    proceed()
    switch phase {
    case .lingering: channel.close(promise: nil)
    case .serving(let serving) where !serving.isComplete: refuse(.malformed("the client closed in mid-body"))
    case .serving: expectNothing()
    case .awaitingHead, .closed: break
    }
  }

  /// For the time being nothing has to come. A client that has closed its side may still wait for its answer, or be gone: nothing
  /// but a write tells, and an origin that is silent leaves nothing to write, so there is a limit to the wait.
  private func expectNothing() {
    if inputIsClosed { timer.set(.read, in: service.halfClosedTime) } else { timer.clear(.read) }
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
    case .awaitingHead: refuse(RequestRefusal(status: .requestTimeout, reason: "the request's head did not come in time"))
    case .serving(let serving) where serving.isComplete: abort()
    case .serving: refuse(RequestRefusal(status: .requestTimeout, reason: "the request's body did not come in time"))
    case .lingering: channel.close(promise: nil)
    case .closed: break
    }
  }
}
#endif
