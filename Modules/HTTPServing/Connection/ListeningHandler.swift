#if Service
import NIOCore

/// The handler of a listening socket. It pauses after an error of `accept`, and accepts the connections that wait before the
/// socket is closed. It must be the first handler of the channel.
final class ListeningHandler: ChannelDuplexHandler {
  typealias InboundIn = any Channel
  typealias InboundOut = any Channel
  typealias OutboundIn = any Channel
  typealias OutboundOut = any Channel

  /// The time without `accept` after an error.
  static let pause = TimeAmount.milliseconds(100)
  /// The largest number of connections of one pass of `accept` while the socket is being closed.
  private static let pass = 256
  /// The time for that pass to begin. It does not begin if no connection waits.
  private static let closingTime = TimeAmount.milliseconds(10)

  private var accepted = 0
  /// Closes the socket. Set while the waiting connections are being accepted.
  private var closing: (() -> Void)?

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    accepted += 1
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    context.fireChannelReadComplete()
    // A pass below its limit has found the queue empty.
    if accepted < Self.pass { endClosing() }
    accepted = 0
  }

  /// Pauses if no descriptor is left (EMFILE, ENFILE), or memory (ENOBUFS, ENOMEM).
  ///
  /// SwiftNIO's `AcceptBackoffHandler` only delays the next read. After an error the socket stays registered for reading, so its
  /// event loop would spin until a connection is closed. Only the option `autoRead` removes the registration.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is IOError else { return context.fireErrorCaught(error) }
    let channel = context.channel
    try? channel.syncOptions?.setOption(.autoRead, value: false)
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
      if channel.isActive { try? channel.syncOptions?.setOption(.autoRead, value: true) }
    }
  }

  /// Accepts the connections that wait, and then closes the socket. The system resets the waiting connections of a closed socket,
  /// so their requests would be lost.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard closing == nil else { return context.channel.closeFuture.cascade(to: promise) }
    try? context.channel.syncOptions?.setOption(.maxMessagesPerRead, value: UInt(Self.pass))
    closing = { context.close(mode: mode, promise: promise) }
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.closingTime) { self.endClosing() }
  }

  private func endClosing() {
    let close = closing
    closing = nil
    close?()
  }
}
#endif
