#if Service
import CacheCore
import HummingbirdCore
import Logging
public import NIOCore
public import NIOPosix
public import ServiceLifecycle

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Glibc)
import Glibc
#endif

/// An HTTP/1.1 server on one port, as a service.
///
/// On graceful shutdown it accepts no new connection and completes the running requests.
public struct HTTPListener: Service {
  private let address: HostAndPort
  private let responder: any HTTPResponder
  private let settings: ConnectionSettings
  private let group: any EventLoopGroup
  private let onRunning: @Sendable (HostAndPort) async -> Void

  /// - Parameters:
  ///   - address: The address to open.
  ///   - responder: The handler of all requests.
  ///   - settings: The limits of connections.
  ///   - group: The event loops. The caller shuts them down.
  ///   - onRunning: Called with the address when the port is open. If port 0 was requested, it has the port that the system has
  ///     selected.
  public init(
    _ address: HostAndPort, _ responder: any HTTPResponder, settings: ConnectionSettings = ConnectionSettings(),
    group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
    onRunning: @escaping @Sendable (HostAndPort) async -> Void = { _ in }
  ) {
    (self.address, self.responder, self.settings, self.group, self.onRunning) = (address, responder, settings, group, onRunning)
  }

  /// Serves until the service is shut down.
  ///
  /// - Throws: `CacheError.Code.cannotListen` with the address and the reason, if the port cannot be opened.
  public func run() async throws {
    let server = Server(
      childChannelSetup: ConnectionSetup(responder: responder, settings: settings),
      configuration: ServerConfiguration(
        address: .hostname(address.host, port: address.port),
        availableConnectionsDelegate: MaximumAvailableConnections(settings.maximumConnections, logger: Self.logger)),
      onServerRunning: { [address, onRunning] in
        await onRunning(address.with($0.localAddress?.port ?? address.port))
      }, eventLoopGroup: group, logger: Self.logger)
    do {
      try await server.run()
    } catch let error as IOError {
      throw CacheError(
        .cannotListen, reason: "cannot listen on \(address): \(String(cString: strerror(error.errnoCode)))",
        errno: error.errnoCode, underlying: error)
    }
  }

  /// Discards its messages. The responder sees every request, and errors are thrown.
  private static let logger = Logger(label: "etagere.http") { _ in SwiftLogNoOpLogHandler() }
}

/// The setup of one connection of HummingbirdCore's server, which accepts, counts and closes connections. ``ConnectionHandler``
/// reads and writes them.
///
/// HummingbirdCore's `HTTP1Channel` is not used. It refuses unknown methods, reads values as UTF-8, reads nothing after a request
/// with `Upgrade`, sends chunks to HTTP/1.0 clients, and responds to a too long head with 400. It also takes three times the
/// processor time of ``ConnectionHandler``.
private struct ConnectionSetup: ServerChildChannel {
  struct Value: ServerChildChannelValue {
    let channel: any Channel
  }

  let responder: any HTTPResponder
  let settings: ConnectionSettings

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      // The handler reads only when it can use the bytes. This is the back-pressure for uploads and pipelined requests.
      try channel.syncOptions?.setOption(.autoRead, value: false)
      try channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
      try channel.pipeline.syncOperations.addHandler(ConnectionHandler(responder, settings, channel: channel))
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
