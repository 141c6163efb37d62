#if Server
import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Glibc)
import Glibc
#endif

/// The handler of a listening socket, which pauses after an error of `accept`. It must be the first handler of the channel.
final class ListeningHandler: ChannelInboundHandler {
  typealias InboundIn = any Channel
  typealias InboundOut = any Channel

  /// The time without `accept` after an error.
  private static let pause = TimeAmount.milliseconds(100)

  /// Pauses if no descriptor is left (EMFILE, ENFILE), or memory (ENOBUFS, ENOMEM).
  ///
  /// SwiftNIO's `AcceptBackoffHandler` only delays the next read. After an error the socket stays registered for reading, so its
  /// event loop would spin until a connection is closed. Only the option `autoRead` removes the registration.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch (error as? IOError)?.errnoCode {
    case EMFILE, ENFILE, ENOBUFS, ENOMEM: break
    // A client has closed its connection before it was accepted. Passed on, the error would end HummingbirdCore's server.
    case ECONNABORTED: return
    default: return context.fireErrorCaught(error)
    }
    let channel = context.channel
    try? channel.syncOptions?.setOption(.autoRead, value: false)
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
      if channel.isActive { try? channel.syncOptions?.setOption(.autoRead, value: true) }
    }
  }
}
#endif
