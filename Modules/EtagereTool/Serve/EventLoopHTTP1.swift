#if Tool && Service
import AsyncHTTPNetworking
import HummingbirdCore
import Logging
import NIOCore

/// Hummingbird's HTTP/1.1, with all work of a connection on its event loop. A hit in memory is then served without a change of
/// threads.
struct EventLoopHTTP1: ServerChildChannel {
  private let base: HTTP1Channel

  init(_ base: HTTP1Channel) { self.base = base }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
    base.setup(channel: channel, logger: logger)
  }

  @concurrent func handle(value: HTTP1Channel.Value, logger: Logger) async {
    await withTaskExecutorPreference(LoopExecutor(value.channel.eventLoop)) {
      await base.handle(value: value, logger: logger)
    }
  }
}
#endif
