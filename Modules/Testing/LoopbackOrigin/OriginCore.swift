#if Origin
internal import CacheCore
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The state that the server shares with its connections. It has no reference to `OriginServer`, so that a released server can
/// close.
final class OriginCore: Sendable {
  /// The threads of all origins in the process. They are separate from NIO's shared ones, so that a client under test does not
  /// affect the timing. Each origin uses one of them.
  private static let threads = MultiThreadedEventLoopGroup(numberOfThreads: 2)

  let routes: RouteTable
  let recorder: OriginRecorder
  let requestBodyLimit: Int
  let recordedBodyLimit: Int
  let now: @Sendable () -> Date

  private let loop: any EventLoop
  private let pipe: NIOLoopBound<LinkPipe>
  private let listener = Lock<(any Channel)?>(nil)
  /// The reservation of the port. It outlives the listener, so that a client of a stopped origin does not reach another server.
  private let reservation = Lock<ReservedPort?>(nil)

  init(
    routes: RouteTable, recorder: OriginRecorder, requestBodyLimit: Int, recordedBodyLimit: Int,
    now: @escaping @Sendable () -> Date,
    link: NetworkLink?
  ) async throws {
    let loop = Self.threads.next()
    (self.routes, self.recorder, self.now) = (routes, recorder, now)
    (self.requestBodyLimit, self.recordedBodyLimit) = (max(0, requestBodyLimit), max(0, recordedBodyLimit))
    self.loop = loop
    pipe = try await loop.submit { NIOLoopBound(LinkPipe(loop: loop, link: link), eventLoop: loop) }.get()
  }

  /// Listens on the loopback interface and returns the port.
  func listen(port: Int) async throws -> Int {
    #if canImport(Darwin)
    let number = port
    #else
    let reserved = try ReservedPort(port)
    let number = reserved.number
    reservation.withLock { $0 = reserved }
    #endif
    let channel = try await ServerBootstrap(group: loop)
      .serverChannelOption(.backlog, value: 1024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(.writeBufferWaterMark, value: .init(low: 128 * 1024, high: 512 * 1024))
      .childChannelInitializer { [self] channel in channel.eventLoop.makeCompletedFuture { accept(channel) } }
      .bind(host: "127.0.0.1", port: number)
      .get()
    listener.withLock { $0 = channel }
    return channel.localAddress?.port ?? number
  }

  private func accept(_ channel: any Channel) {
    let pipe = pipe.value
    let link = ConnectionLink(pipe: pipe, recorder: recorder)
    do {
      try channel.pipeline.syncOperations.addHandler(link)
      if pipe.isStopped || pipe.isOffline { return link.abort() }
      try channel.pipeline.syncOperations.addHandlers([
        ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)),
        OriginConnectionHandler(link: link, core: self),
      ])
    } catch {
      channel.close(promise: nil)
    }
  }

  func setLink(_ link: NetworkLink?) async {
    // Fails only if the loop has ended, which this one never does.
    _ = try? await loop.submit { [pipe] in pipe.value.setLink(link) }.get()
  }

  /// Begins to close the listener and all connections. The future completes when they are closed.
  @discardableResult
  func shutDown() -> EventLoopFuture<Void> {
    let channel = listener.withLock { $0 }
    recorder.close()
    // A route's closure may retain the origin.
    routes.removeAll()
    channel?.close(promise: nil)
    return loop.flatSubmit { [loop, pipe] in
      var closed = pipe.value.stop()
      if let channel { closed.append(channel.closeFuture) }
      return EventLoopFuture.andAllComplete(closed, on: loop)
    }
  }
}

/// The counters of an origin or of one of its paths.
///
/// Counters are increased before the bytes are sent, so a client that has received a response finds it counted.
public struct OriginCounters: Sendable, Hashable {
  /// The number of requests that were received completely.
  public var requests = 0
  /// The number of connections accepted since the last reset. Zero in the counters of a path.
  public var connectionsAccepted = 0
  /// The number of open connections, which a reset does not change. Zero in the counters of a path.
  public var openConnections = 0
  /// The number of requests with `If-None-Match` or `If-Modified-Since`.
  public var conditionalRequests = 0
  /// The number of 304 responses.
  public var notModified = 0
  /// The number of body bytes passed to the kernel, without chunk framing.
  public var bodyBytesSent = 0
  /// The number of received body bytes, without chunk framing. They are counted on arrival, including those of incomplete and
  /// refused requests.
  public var requestBodyBytes = 0
  /// The number of all bytes passed to the kernel: heads, framing and bodies.
  public var bytesSent = 0
  /// The number of all bytes received. For a path: the bytes up to the end of its requests that belong to no earlier request.
  public var bytesReceived = 0

  /// Creates counters that are zero.
  public init() {}
}

/// The error of an origin that could not be started.
public struct OriginError: Error, CustomStringConvertible {
  /// The requested port, or 0 for any free port.
  public let port: Int
  /// The error of the system.
  public let underlying: any Error

  /// A description of the error.
  public var description: String {
    "cannot listen on 127.0.0.1, \(port == 0 ? "any free port" : "port \(port)"): \(underlying)"
  }
}
#endif
