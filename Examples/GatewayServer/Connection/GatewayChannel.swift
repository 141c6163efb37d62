#if Gateway
import HummingbirdCore
import Logging
import NIOCore

/// The setup of one connection of HummingbirdCore's server, which accepts, counts and closes connections. ``ConnectionHandler``
/// reads and writes them.
///
/// HummingbirdCore's `HTTP1Channel` is not used. It refuses unknown methods, reads values as UTF-8, reads nothing after a request
/// with `Upgrade`, sends chunks to HTTP/1.0 clients, and responds to a too long head with 400.
struct GatewayChannel: ServerChildChannel {
  struct Value: ServerChildChannelValue {
    let channel: any Channel
  }

  let service: ConnectionService

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      // The handler reads only when it can use the bytes. This is the back-pressure for uploads and pipelined requests.
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
