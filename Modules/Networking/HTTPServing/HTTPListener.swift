#if Server
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
/// ```swift
/// import HTTPServing
/// import NIOCore
///
/// struct Hello: HTTPResponder {
///   func respond(to request: ServerRequest) async -> ServerResponse {
///     ServerResponse(head: HTTPResponse(status: .ok), body: ResourceBody(Data("hello".utf8)))
///   }
///
///   func respond(to refusal: RequestRefusal, peer: SocketAddress?) -> ServerResponse {
///     ServerResponse(head: HTTPResponse(status: refusal.status), body: ResourceBody(Data()))
///   }
/// }
/// try await HTTPListener(HostAndPort(host: "127.0.0.1", port: 8080), Hello()).run()
/// ```
///
/// On graceful shutdown it accepts no new connection, completes the running requests and the next request of each open
/// connection, and then returns. A connection without a request is closed after `ConnectionSettings.shutdownIdleTime`.
public struct HTTPListener: Service {
  private let address: HostAndPort
  private let responder: any HTTPResponder
  private let settings: ConnectionSettings
  private let group: any EventLoopGroup
  private let onRunning: @Sendable (HostAndPort) async -> Void

  /// Creates a server, which opens its port when it runs.
  ///
  /// - Parameters:
  ///   - address: The address to open.
  ///   - responder: The handler of all requests.
  ///   - settings: The limits of connections.
  ///   - group: The event loops. The caller shuts them down.
  ///   - onRunning: Called when the port is open. With port 0, the address has the port that the system has selected.
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
      onServerRunning: { [address, onRunning] channel in
        try? await channel.eventLoop.submit {
          try channel.pipeline.syncOperations.addHandler(ListeningHandler(), position: .first)
        }.get()
        await onRunning(address.with(channel.localAddress?.port ?? address.port))
      }, eventLoopGroup: group, logger: Self.logger)
    do {
      try await server.run()
    } catch let error as CancellationError {
      throw error
    } catch {
      let number = (error as? IOError)?.errnoCode
      let isUnknown = error is SocketAddressError || error is SocketAddressError.UnknownHost
      let reason = number.map { String(cString: strerror($0)) } ?? (isUnknown ? "unknown host" : "\(error)")
      throw CacheError(
        .cannotListen, reason: "cannot listen on \(address): \(reason)", errno: number, underlying: error)
    }
  }

  /// A logger that discards its messages. The responder sees every request, and errors are thrown.
  private static let logger = Logger(label: "etagere.http") { _ in SwiftLogNoOpLogHandler() }
}

/// The setup of one connection. HummingbirdCore's server accepts, counts and closes connections, and ``ConnectionHandler`` reads
/// and writes them.
///
/// HummingbirdCore's `HTTP1Channel` is not used. It refuses unknown methods, reads values as UTF-8, reads nothing after a request
/// with `Upgrade`, sends chunks to HTTP/1.0 clients, and responds to an overlong head with 400.
private struct ConnectionSetup: ServerChildChannel {
  struct Value: ServerChildChannelValue {
    let channel: any Channel
  }

  #if os(Linux)
  /// The number of unsent bytes from which on Linux accepts no more segments. Without this limit, a client that leaves, as a
  /// player that seeks does, leaves up to 4 MB behind that were requested from the origin for it.
  private static let unsentLimit: SocketOptionValue = 64 << 10
  /// `TCP_NOTSENT_LOWAT`, which SwiftNIO has no name for.
  private static let unsentLimitOption = NIOBSDSocket.Option(rawValue: CInt(TCP_NOTSENT_LOWAT))
  #endif

  let responder: any HTTPResponder
  let settings: ConnectionSettings
  private let freedMemory = FreedMemory()

  init(responder: any HTTPResponder, settings: ConnectionSettings) {
    self.responder = responder
    self.settings = settings
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      // The handler reads only when it can use the bytes. This is the back-pressure for uploads and pipelined requests.
      try channel.syncOptions?.setOption(.autoRead, value: false)
      try channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
      #if os(Linux)
      // A system without the option serves too.
      try? channel.syncOptions?.setOption(.tcpOption(Self.unsentLimitOption), value: Self.unsentLimit)
      #endif
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
    freedMemory.connectionEnded(on: value.channel.eventLoop)
  }
}

/// The limits and timeouts of the connections of one port.
public struct ConnectionSettings: Sendable {
  /// The number of connections that are open at the same time. Further clients wait until one is closed.
  public var maximumConnections = 1_000
  /// The time that a client has to send a head, to send the next piece of a body, and to read a piece of a response. Also the
  /// time that a connection without a request stays open.
  public var clientTimeout = TimeAmount.seconds(60)
  /// The time for which a client that has closed its side may wait for the next byte of its response. Then its request is
  /// cancelled.
  ///
  /// Almost every such client is gone, and only a write would show it. nginx, Envoy and Go give such clients no time at all.
  public var halfClosedTime = TimeAmount.seconds(1)
  /// The time that a connection without a request stays open during shutdown, so that requests already sent, and the next request
  /// of a client whose last response promised to keep the connection open, get a response.
  public var shutdownIdleTime = TimeAmount.seconds(2)
  var limits = RequestLimits()
  /// The time that the head of a response waits for the first bytes of its body. A body that fails in this time becomes an error
  /// response, and not a reset. Responses whose body is available do not wait.
  var headDelay = TimeAmount.milliseconds(10)
  /// The time in which bytes are still read from a connection that is closed for writing, so that no reset overtakes the last
  /// response (RFC 9112 §9.6).
  var lingerTime = TimeAmount.seconds(2)
  /// The number of unwanted body bytes that are read and dropped in order to keep the connection open.
  var drainLimit = 256 * 1024

  /// Creates the default settings.
  public init() {}

  /// Creates the default settings and changes some of them.
  public init(_ change: (inout Self) -> Void) { change(&self) }
}

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

/// The limit of open descriptors of this process (`RLIMIT_NOFILE`). Connections to clients share it with files and with
/// connections to origins.
public enum DescriptorLimit {
  /// Raises the soft limit to the hard one, and returns the limit that holds then.
  ///
  /// A usual soft limit is 1,024, for programs that use `select`. The hard limit is the one that the operator has set.
  public static func raise() -> Int {
    var limit = current
    // Darwin has a hard limit without an end, but accepts only OPEN_MAX (10,240) on some versions.
    for soft in [limit.rlim_max, min(limit.rlim_max, 10_240)] where soft > limit.rlim_cur {
      limit.rlim_cur = soft
      if setrlimit(resource, &limit) == 0 { break }
      limit = current
    }
    return Int(clamping: current.rlim_cur)
  }

  /// Returns the number of client connections that leave enough descriptors for everything else.
  ///
  /// - Parameters:
  ///   - limit: The limit of descriptors.
  ///   - wanted: The number of connections if the limit allows it.
  ///   - reserved: The descriptors for connections to origins, for logs and for the files of a store. At most half of the limit
  ///     is reserved.
  ///   - each: The descriptors of a connection: 1, or 2 if its response can be read from a file.
  public static func connections(within limit: Int, wanted: Int, reserved: Int, each: Int) -> Int {
    max(1, min(wanted, (limit - min(reserved, limit / 2)) / each))
  }

  private static var current: rlimit {
    var limit = rlimit()
    return getrlimit(resource, &limit) == 0 ? limit : rlimit(rlim_cur: 256, rlim_max: 256)
  }

  #if canImport(Glibc)
  private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
  private static let resource = RLIMIT_NOFILE
  #endif
}
#endif
