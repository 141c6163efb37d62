#if Origin
internal import CacheTesting
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The HTTP handler of one connection. It reads requests and responds to them in order, on its event loop only.
final class OriginConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart

  private enum Entry {
    case request(ReceivedRequest)
    /// An invalid request. The connection is closed after the response.
    case refusal(OriginResponse)
  }

  private struct Incoming {
    var head: HTTPRequestHead
    var path: String
    var body: ReceivedBody
    var isTooLarge = false
  }

  /// The response in progress. Between two events it always waits for something.
  private struct ActiveResponse {
    var path: String?
    var steps: ArraySlice<ResponseScript.Step> = []
    var cancel: (() -> Void)?
  }

  /// The limits for pipelined requests: at `most` waiting requests reading pauses, and at `few` it resumes.
  private static let pipelined = (most: 64, few: 16)

  private let link: ConnectionLink
  private let core: OriginCore
  private var context: ChannelHandlerContext?
  private var incoming: Incoming?
  private var entries: CircularBuffer<Entry> = []
  private var activeResponse: ActiveResponse?
  /// The number of the current wait. It identifies a late wake-up.
  private var turn = 0
  private var isProcessing = false
  private var isPaused = false
  private var hasInputEnded = false

  init(link: ConnectionLink, core: OriginCore) {
    (self.link, self.core) = (link, core)
  }

  // MARK: Channel

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelInactive(context: ChannelHandlerContext) {
    abandon()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is HTTPParserError else { return context.close(promise: nil) }
    incoming = nil
    entries.append(.refusal(OriginResponse(text: "not an HTTP/1.1 request\n", status: .badRequest)))
    process()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .some(.inputClosed) = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
    hasInputEnded = true
    // TCP does not distinguish a client that has gone from one that only stopped sending. A client whose response is waiting is
    // treated as gone, because an abandoned load would otherwise occupy its connection forever.
    if activeResponse != nil {
      context.close(promise: nil)
    } else {
      process()
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      let target = ReceivedTarget(head.uri, method: HTTPRequest.Method(head.method.rawValue) ?? .get).path ?? "/"
      incoming = Incoming(
        head: head, path: String(target.prefix { $0 != "?" }), body: ReceivedBody(recordedLimit: core.recordedBodyLimit))
      if activeResponse == nil, entries.isEmpty,
        head.headers[canonicalForm: "expect"].contains(where: { $0.lowercased() == "100-continue" })
      {
        link.send(.bytes(ResponseScript.head(.continue, [:]), isBody: false, path: nil))
        link.flush()
      }
    case .body(let part):
      // Only the length is copied: a copy of the body would make each append copy all received bytes.
      guard let length = incoming?.body.length, let path = incoming?.path else { return }
      core.recorder.receivedBody(bytes: part.readableBytes, path: path)
      if part.readableBytes > core.requestBodyLimit - length {
        incoming?.isTooLarge = true
        incoming?.body = ReceivedBody(recordedLimit: 0)
      } else if incoming?.isTooLarge == false {
        incoming?.body.append(part)
      }
    case .end:
      guard let incoming else { return }
      self.incoming = nil
      entries.append(entry(incoming))
      process()
    }
  }

  // MARK: Requests

  private func entry(_ incoming: Incoming) -> Entry {
    guard !incoming.isTooLarge else {
      return .refusal(OriginResponse(text: "the request body is too large\n", status: .contentTooLarge))
    }
    let head = incoming.head
    guard let method = HTTPRequest.Method(head.method.rawValue) else {
      return .refusal(OriginResponse(text: "unknown method\n", status: .badRequest))
    }
    var fields = HTTPFields()
    for (name, value) in head.headers {
      if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
    }
    let target = ReceivedTarget(head.uri, method: method)
    var request = ReceivedRequest(
      head: HTTPRequest(
        method: method, scheme: target.scheme, authority: target.authority ?? head.headers.first(name: "host"),
        path: target.path, headerFields: fields),
      body: incoming.body.start, connection: link.number)
    (request.bodyLength, request.bodyDigest) = (incoming.body.length, incoming.body.digest)
    if target.isForProxy { request.proxyTarget = head.uri }
    request.isHTTP10 = head.version == .http1_0
    request.requestsClose = !head.isKeepAlive
    return .request(core.recorder.record(request, bytes: link.attributeBytes()))
  }

  // MARK: Responses

  private func process() {
    guard !isProcessing else { return }
    isProcessing = true
    defer { isProcessing = false }
    while activeResponse == nil, let entry = entries.popFirst() { start(entry) }
    pauseOrResume()
    if activeResponse == nil, entries.isEmpty, hasInputEnded { link.send(.close) }
    link.flush()
  }

  private func start(_ entry: Entry) {
    turn += 1
    switch entry {
    case .refusal(var response):
      response.delivery.closesAfterwards = true
      activeResponse = ActiveResponse(path: nil)
      begin(response, ReceivedRequest(head: HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil)))
    case .request(let request):
      activeResponse = ActiveResponse(path: request.path)
      switch core.routes.route(for: request).source {
      case .fixed(let response): begin(response, request)
      case .turns(let turns): begin(turns.take(), request)
      case .closure(let closure): callHandler(closure, request)
      }
    }
  }

  private func callHandler(_ closure: @escaping @Sendable (ReceivedRequest) async -> OriginResponse, _ request: ReceivedRequest) {
    guard let loop = context?.eventLoop else { return }
    let handler = NIOLoopBound(self, eventLoop: loop)
    let turn = turn
    let task = Task {
      let response = await closure(request)
      loop.execute {
        let handler = handler.value
        guard handler.turn == turn, handler.activeResponse != nil else { return }
        handler.begin(response, request)
        handler.process()
      }
    }
    activeResponse?.cancel = { task.cancel() }
  }

  private func begin(_ response: OriginResponse, _ request: ReceivedRequest) {
    activeResponse?.steps = ResponseScript(response, to: request, date: core.now()).steps[...]
    run()
  }

  private func resume(_ turn: Int) {
    guard self.turn == turn, activeResponse != nil else { return }
    run()
    process()
  }

  /// Runs steps until one must wait or all are done.
  private func run() {
    let path = activeResponse?.path
    while let step = activeResponse?.steps.popFirst() {
      switch step {
      case .head(let bytes, let isNotModified):
        if isNotModified, let path { core.recorder.recordNotModified(path) }
        link.send(.bytes(bytes, isBody: false, path: path))
      case .bytes(let bytes, let isBody): link.send(.bytes(bytes, isBody: isBody, path: path))
      case .trickle(var bytes, let isBody, let pause):
        guard let byte = bytes.readSlice(length: 1) else { continue }
        link.send(.bytes(byte, isBody: isBody, path: path))
        if bytes.readableBytes > 0 { repeats(.trickle(bytes, isBody: isBody, every: pause)) }
        return wait(for: pause)
      case .endless(let bytes):
        // A client that reads slowly or not at all must not fill the memory.
        if link.takesMore { link.send(.bytes(bytes, isBody: false, path: path)) }
        repeats(step)
        return wait(for: .milliseconds(1))
      case .close: return end(.close)
      case .reset: return end(.reset)
      case .stall: return wait { {} }
      case .wait(let duration): return wait(for: duration)
      case .hold(let gate): return wait(at: gate)
      }
    }
    activeResponse = nil
  }

  /// Inserts a step, or its remainder, before the next one.
  private func repeats(_ step: ResponseScript.Step) {
    guard let next = activeResponse?.steps.startIndex else { return }
    activeResponse?.steps.insert(step, at: next)
  }

  /// Ends the connection. Other requests on it get no response.
  private func end(_ item: ConnectionLink.Item) {
    link.send(item)
    entries = []
    activeResponse = nil
  }

  /// Sends the queued bytes, then begins to wait. `start` returns a closure that cancels the wait.
  private func wait(_ start: () -> () -> Void) {
    link.flush()
    if hasInputEnded { context?.close(promise: nil) }
    // Both calls may have ended the connection and the response.
    guard activeResponse != nil else { return }
    turn += 1
    let cancel = start()
    activeResponse?.cancel = cancel
  }

  private func wait(for duration: Duration) {
    guard let loop = context?.eventLoop else { return }
    wait {
      let turn = self.turn
      let timer = loop.assumeIsolated().scheduleTask(in: TimeAmount(duration)) { self.resume(turn) }
      return { timer.cancel() }
    }
  }

  private func wait(at gate: Gate) {
    guard let loop = context?.eventLoop else { return }
    wait {
      let turn = self.turn
      let handler = NIOLoopBound(self, eventLoop: loop)
      let ticket = gate.arrive { loop.execute { handler.value.resume(turn) } }
      return { gate.withdraw(ticket) }
    }
  }

  private func abandon() {
    entries = []
    incoming = nil
    turn += 1
    let cancel = activeResponse?.cancel
    activeResponse = nil
    cancel?()
  }

  /// Pauses reading from a client that pipelines faster than it gets responses.
  private func pauseOrResume() {
    let pauses = isPaused ? entries.count > Self.pipelined.few : entries.count >= Self.pipelined.most
    guard pauses != isPaused, let context else { return }
    isPaused = pauses
    // Fails only on a closed channel, which is not read any more.
    try? context.channel.syncOptions?.setOption(.autoRead, value: !pauses)
  }
}
#endif
