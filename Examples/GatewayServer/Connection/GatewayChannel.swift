#if Gateway
import HummingbirdCore
import Logging
import NIOCore

/// What HummingbirdCore's server does with a connection: it accepts, counts, and closes them in good order; what is said on them
/// is ``ConnectionHandler``'s.
///
/// Not its `HTTP1Channel`: that knows a list of methods, reads values as UTF-8, splits `Cookie`, tells an HTTP/1.0 client of
/// chunks, and answers an overlong head with 400.
struct GatewayChannel: ServerChildChannel {
  struct Value: ServerChildChannelValue {
    let channel: any Channel
  }

  let service: ConnectionService

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      // Nothing is read that nobody is ready for: that is the back-pressure of uploads and of pipelined requests.
      try channel.syncOptions?.setOption(.autoRead, value: false)
      try channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
      try channel.pipeline.syncOperations.addHandler(ConnectionHandler(service, channel: channel))
      return Value(channel: channel)
    }
  }

  func handle(value: Value, logger: Logger) async {
    await withTaskCancellationHandler {
      try? await value.channel.closeFuture.get()
    } onCancel: {
      value.channel.close(promise: nil)
    }
  }
}
#endif
