import CacheTesting
import NIOCore
import NIOPosix
import Testing

/// An origin that accepts connections and reads nothing.
final class SilentOrigin: Sendable {
  let port: Int
  private let channel: any Channel
  private let connections: WatchedState<[any Channel]>

  private init(_ channel: any Channel, port: Int, _ connections: WatchedState<[any Channel]>) {
    (self.channel, self.port, self.connections) = (channel, port, connections)
  }

  static func start() async throws -> SilentOrigin {
    let connections = WatchedState<[any Channel]>([])
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelOption(.autoRead, value: false)
      .childChannelInitializer { channel in
        connections.update { $0.append(channel) }
        return channel.eventLoop.makeSucceededVoidFuture()
      }
      .bind(host: "127.0.0.1", port: 0).get()
    return SilentOrigin(channel, port: try #require(channel.localAddress?.port), connections)
  }

  func waitForConnection() async { await connections.wait { !$0.isEmpty } }

  func stop() async {
    for connection in connections.read({ $0 }) { connection.close(promise: nil) }
    try? await channel.close()
  }
}
