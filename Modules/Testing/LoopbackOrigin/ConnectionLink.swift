#if Origin
internal import NIOCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The origin's end of one connection, next to the socket. It delays arriving bytes by the link's latency, passes departing bytes
/// to the shared pipe, and writes those that have come through to the socket. Used on its event loop only.
final class ConnectionLink: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The output for the client, in order.
  enum Item {
    case bytes(ByteBuffer, isBody: Bool, path: String?)
    /// An orderly close.
    case close
    /// A close by RST.
    case reset
  }

  private enum Arrival {
    case bytes(ByteBuffer)
    case end
  }

  /// The maximum number of bytes in one write. Sent body bytes are counted per write.
  private static let writeSize = 65_536
  /// The time for which a client may keep its side open after ours was closed.
  private static let lingering = TimeAmount.seconds(2)

  private let pipe: LinkPipe
  private let recorder: OriginRecorder
  private var context: ChannelHandlerContext?
  private(set) var number = -1
  private var acceptedAt: Int64 = 0

  private var arrivals: CircularBuffer<(due: Int64, arrival: Arrival)> = []
  private var lastDue: Int64 = .min
  private var arrivalTimer: Scheduled<Void>?
  private var unattributedBytes = 0

  /// The items that wait for a slot in the pipe.
  private var waiting: CircularBuffer<Item> = []
  /// The number of items in the pipe, including partial ones.
  private var inPipe = 0
  /// The items that have left the pipe and wait for the socket.
  private var ready: CircularBuffer<Item> = []
  private var isDraining = false
  private var isEnding = false
  private var hasSentEnd = false
  private var hasInputEnded = false
  private var lingerTimer: Scheduled<Void>?

  init(pipe: LinkPipe, recorder: OriginRecorder) {
    (self.pipe, self.recorder) = (pipe, recorder)
  }

  // MARK: Channel

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelActive(context: ChannelHandlerContext) {
    acceptedAt = LinkPipe.now
    number = recorder.connectionOpened()
    pipe.add(self, as: number)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    pipe.remove(flow: number)
    arrivalTimer?.cancel()
    lingerTimer?.cancel()
    (arrivals, waiting, ready) = ([], [], [])
    isEnding = true
    recorder.connectionClosed()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { drain() }
    context.fireChannelWritabilityChanged()
  }

  // MARK: From the client

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let buffer = unwrapInboundIn(data)
    recorder.received(bytes: buffer.readableBytes)
    unattributedBytes += buffer.readableBytes
    if hasSentEnd {
      context.close(promise: nil)
    } else if !isEnding {
      arrived(.bytes(buffer))
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .some(.inputClosed) = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
    hasInputEnded = true
    if hasSentEnd {
      context.close(promise: nil)
    } else {
      arrived(.end)
    }
  }

  /// Returns the number of bytes received since the last call. They belong to the request that has just been completed.
  func attributeBytes() -> Int {
    defer { unattributedBytes = 0 }
    return unattributedBytes
  }

  private func arrived(_ arrival: Arrival) {
    let latency = pipe.latency
    guard latency > 0 || !arrivals.isEmpty else { return pass(arrival) }
    // A loopback handshake takes no time. On the simulated link, a client cannot send before one round trip.
    let sent = max(LinkPipe.now, acceptedAt + 2 * latency)
    lastDue = max(lastDue, sent + latency)
    arrivals.append((lastDue, arrival))
    setArrivalTimer()
  }

  private func setArrivalTimer() {
    guard arrivalTimer == nil, let first = arrivals.first, let loop = context?.eventLoop else { return }
    arrivalTimer = loop.assumeIsolated().scheduleTask(deadline: .uptimeNanoseconds(UInt64(first.due))) {
      self.arrivalTimer = nil
      let now = LinkPipe.now
      while let first = self.arrivals.first, first.due <= now {
        self.arrivals.removeFirst()
        self.pass(first.arrival)
      }
      self.setArrivalTimer()
    }
  }

  private func pass(_ arrival: Arrival) {
    guard let context else { return }
    switch arrival {
    case .bytes(let buffer):
      context.fireChannelRead(wrapInboundOut(buffer))
      context.fireChannelReadComplete()
    case .end: context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }
  }

  // MARK: To the client

  /// Queues an item until `flush()` is called. After a close or a reset, items are ignored.
  func send(_ item: Item) {
    guard !isEnding else { return }
    var size = 0
    switch item {
    case .bytes(let buffer, _, _): size = buffer.readableBytes
    case .close, .reset: isEnding = true
    }
    if pipe.isShaped || inPipe > 0 {
      inPipe += 1
      waiting.append(item)
      pipe.enqueue(bytes: size, flow: number)
    } else {
      ready.append(item)
    }
  }

  /// Whether bytes sent now are written to the socket at once.
  var takesMore: Bool { inPipe == 0 && ready.isEmpty && (context?.channel.isWritable ?? false) }

  func flush() {
    if inPipe > 0 { pipe.wake() }
    drain()
  }

  /// Returns the next packet of the flow as a slice, without copying.
  func take(_ bytes: Int) -> Item? {
    guard let item = waiting.first else { return nil }
    guard case .bytes(var buffer, let isBody, let path) = item, buffer.readableBytes > bytes,
      let slice = buffer.readSlice(length: bytes)
    else { return waiting.removeFirst() }
    waiting[waiting.startIndex] = .bytes(buffer, isBody: isBody, path: path)
    inPipe += 1
    return .bytes(slice, isBody: isBody, path: path)
  }

  /// Receives a packet that has left the pipe.
  func deliver(_ item: Item) {
    inPipe -= 1
    if context?.channel.isActive ?? false { ready.append(item) }
  }

  /// Writes to the socket as long as it is writable.
  func drain() {
    guard !isDraining, let context else { return }
    isDraining = true
    defer { isDraining = false }
    while let item = ready.popFirst() {
      switch item {
      case .bytes(var buffer, let isBody, let path):
        if !context.channel.isWritable {
          context.flush()
          guard context.channel.isWritable else { return ready.prepend(item) }
        }
        guard let slice = buffer.readSlice(length: min(Self.writeSize, buffer.readableBytes)) else { continue }
        if buffer.readableBytes > 0 { ready.prepend(.bytes(buffer, isBody: isBody, path: path)) }
        write(slice, isBody: isBody, path: path, context)
      case .close: afterWrites(context) { self.closeOutput() }
      case .reset: afterWrites(context) { self.abort() }
      }
    }
    context.flush()
  }

  /// Writes bytes. They are counted before they are sent, so that a client which has received them finds them counted. If the
  /// write fails, the count is reduced again.
  private func write(_ buffer: ByteBuffer, isBody: Bool, path: String?, _ context: ChannelHandlerContext) {
    let bytes = buffer.readableBytes
    let recorder = recorder
    recorder.sent(bytes: bytes, ofBody: isBody ? bytes : 0, path: path)
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.whenFailure { _ in recorder.sent(bytes: -bytes, ofBody: isBody ? -bytes : 0, path: path) }
    context.write(wrapOutboundOut(buffer), promise: promise)
  }

  /// Runs `end` after the pending writes, because closing a channel drops them.
  private func afterWrites(_ context: ChannelHandlerContext, _ end: @escaping () -> Void) {
    context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in end() }
  }

  // MARK: Ends

  private func closeOutput() {
    guard let context, !hasSentEnd else { return }
    hasSentEnd = true
    guard !hasInputEnded else { return context.close(promise: nil) }
    // Closing both directions while the client still sends would cause an RST, which can overtake unread bytes.
    context.close(mode: .output, promise: nil)
    lingerTimer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) { self.context?.close(promise: nil) }
  }

  /// Resets the connection at once and discards queued items.
  func abort() {
    guard let context else { return }
    isEnding = true
    let channel = context.channel
    guard let socket = channel as? any SocketOptionProvider else { return channel.close(promise: nil) }
    socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in channel.close(promise: nil) }
  }

  /// Closes the connection at once. Returns `nil` if it is already closed.
  func closeNow() -> EventLoopFuture<Void>? {
    guard let channel = context?.channel else { return nil }
    isEnding = true
    channel.close(promise: nil)
    return channel.closeFuture
  }
}
#endif
