#if Origin
internal import CacheCore
public import CacheTesting
internal import HTTPTypes
internal import NIOCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An HTTP/1.1 origin server on the loopback interface whose responses and faults a test controls.
///
/// ```swift
/// import LoopbackOrigin
///
/// let origin = try await OriginServer.start()
/// origin.setRoute("/a.png", Route(bytes, contentType: "image/png", etag: "v1"))
/// origin.setRoute("/broken", .fault(.cut(afterBodyBytes: 3)))
///
/// let first = try await load(origin.url("/a.png"))        // 200, ETag: "v1"
/// let second = try await load(origin.url("/a.png"))       // If-None-Match: "v1" gets 304
///
/// #expect(origin.counters(for: "/a.png").notModified == 1)
/// #expect(origin.requests(for: "/a.png").last?.fields[.ifNoneMatch] == "\"v1\"")
/// await origin.stop()
/// ```
///
/// Paths are compared in percent-encoded form, as received. An origin that is released without `stop()` closes shortly
/// afterwards.
public final class OriginServer: Sendable {
  /// The port of the origin.
  public let port: Int
  /// The URL `http://127.0.0.1:<port>`, without a path.
  public let baseURL: URL

  private let core: OriginCore

  init(
    port: Int, link: NetworkLink?, now: @escaping @Sendable () -> Date, requestBodyLimit: Int, recordedBodyLimit: Int,
    logLimit: Int
  ) async throws(OriginError) {
    do {
      core = try await OriginCore(
        routes: RouteTable(fallback: Route { Self.notFound($0) }), recorder: OriginRecorder(logLimit: logLimit),
        requestBodyLimit: requestBodyLimit, recordedBodyLimit: recordedBodyLimit, now: now, link: link)
      self.port = try await core.listen(port: port)
    } catch {
      throw OriginError(port: port, underlying: error)
    }
    baseURL = Self.url("http://127.0.0.1:\(self.port)")
  }

  deinit { core.shutDown() }

  /// Refuses new connections, closes the open ones, and returns when all are closed. Routes are removed and waiting calls return.
  /// Counters and requests stay readable. A second call does nothing.
  ///
  /// On Linux the port stays reserved until the origin is released. Connections to it are refused, and no other server gets it as
  /// a free port.
  public func stop() async {
    // Never fails: a channel that could not be closed was already closed.
    try? await core.shutDown().get()
  }

  // MARK: Routes

  /// Returns the URL of a path. Characters that a URL cannot contain are percent-encoded.
  public func url(_ path: String) -> URL { Self.url("http://127.0.0.1:\(port)\(Self.target(path))") }

  /// Sets or replaces the route of a path. A path with a query matches only that query. A path without one matches every query.
  public func setRoute(_ path: String, _ route: Route) { core.routes.set(route, for: Self.target(path)) }

  /// Removes the route of a path, so that the fallback responds again.
  public func removeRoute(_ path: String) { core.routes.set(nil, for: Self.target(path)) }

  /// Sets the handler for paths without a route. `nil` restores the default, a 404 with a short text.
  public func setFallback(_ handler: (@Sendable (ReceivedRequest) async -> OriginResponse)?) {
    core.routes.setFallback(Route(handler: handler ?? { Self.notFound($0) }))
  }

  /// Sets the credential that proxy requests must have in `Proxy-Authorization`, or `nil` (the default) for none. Without it,
  /// such a request gets a 407 with `Proxy-Authenticate: Basic`. Ordinary requests are not affected.
  ///
  /// The origin forwards nothing as a proxy. It responds to targets in absolute form by their path, and to CONNECT with a 501.
  public func setProxyCredential(_ credential: OriginCredential?) { core.routes.setProxyCredential(credential) }

  // MARK: The link

  /// Replaces the link, or removes it with `nil`. Packets in transit arrive at their original time. If the link is `offline`,
  /// every connection has been reset when this returns.
  public func setLink(_ link: NetworkLink?) async { await core.setLink(link) }

  // MARK: Requests and counters

  /// The counters since the start or the last reset.
  public var counters: OriginCounters { core.recorder.total }

  /// Returns the counters of one path with any query.
  public func counters(for path: String) -> OriginCounters { core.recorder.counters(for: Self.path(path)) }

  /// All requests since the start or the last reset, in order.
  public var requests: [ReceivedRequest] { core.recorder.requests }

  /// Returns the requests for one path with any query. O(n) in the number of requests for all paths.
  public func requests(for path: String) -> [ReceivedRequest] {
    let path = Self.path(path)
    return core.recorder.requests.filter { $0.path == path }
  }

  /// Removes the recorded requests and resets the counters, except that of open connections.
  public func resetCounters() { core.recorder.reset() }

  /// Waits until `count` requests for the path (`nil`: any path) have been received. Returns the recorded ones. Returns early if
  /// the task is cancelled or the origin stops.
  @discardableResult
  public func waitForRequests(path: String? = nil, count: Int = 1) async -> [ReceivedRequest] {
    await core.recorder.waitForRequests(path: path.map(Self.path), count: count)
    return path.map { requests(for: $0) } ?? requests
  }

  /// Waits until the given number of request body bytes have been received for the path, including those of incomplete requests.
  /// It shows that a client streams its request body. Returns early if the task is cancelled or the origin stops.
  public func waitForRequestBody(path: String, bytes: Int) async {
    await core.recorder.waitForRequestBody(path: Self.path(path), bytes: bytes)
  }

  /// Waits until at most `count` connections are open. It shows that a cancelled load has released its connection. Returns early
  /// if the task is cancelled or the origin stops.
  public func waitForOpenConnections(atMost count: Int = 0) async { await core.recorder.waitForOpenConnections(atMost: count) }

  // MARK: URLs

  private static func notFound(_ request: ReceivedRequest) -> OriginResponse {
    OriginResponse(text: "nothing at \(request.path)\n", status: .notFound)
  }

  /// Converts a string that is always a valid URL. The file URL only satisfies the type.
  private static func url(_ string: String) -> URL { URL(string: string) ?? URL(filePath: "/") }

  private static func path(_ path: String) -> String { String(target(path).prefix { $0 != "?" }) }

  /// Returns a path in encoded form. Characters of RFC 3986 and existing escapes stay, and others are escaped as UTF-8.
  private static func target(_ path: String) -> String {
    "\(path.hasPrefix("/") ? "" : "/")\(URL.encodedTarget(path))"
  }
}

extension OriginServer {
  /// Starts an origin on 127.0.0.1.
  ///
  /// - Parameters:
  ///   - link: The link to the clients, or `nil` for none.
  ///   - port: The port, or 0 for a free one. The port of a stopped origin can be used again, to simulate a restart.
  ///   - now: A closure that returns the time for `Date` fields, for example of a manual clock.
  ///   - requestBodyLimit: The maximum size of a request body in bytes. A larger one gets a 413, and the connection is closed.
  ///   - recordedBodyLimit: The maximum number of bytes recorded of each request body. A longer body is counted, and a digest of
  ///     it is recorded. Use it with a larger `requestBodyLimit` to test large uploads.
  ///   - logLimit: The maximum number of recorded requests. The oldest are removed first. The counters are not affected.
  /// - Throws: `OriginError` if the origin cannot listen on the port.
  public static func start(
    link: NetworkLink? = nil, port: Int = 0, now: @escaping @Sendable () -> Date = { Date() }, requestBodyLimit: Int = 64 << 20,
    recordedBodyLimit: Int = .max, logLimit: Int = .max
  ) async throws(OriginError) -> OriginServer {
    try await OriginServer(
      port: port, link: link, now: now, requestBodyLimit: requestBodyLimit, recordedBodyLimit: recordedBodyLimit,
      logLimit: logLimit)
  }
}

/// The conformance that lets `DownloaderContract` test engines with sockets against this origin.
extension OriginServer: ContractOrigin {
  public var hasSockets: Bool { true }

  public func serve(_ responses: [ContractResponse]) async throws -> URL {
    let path = "/contract/\(Revision.random())"
    guard !responses.isEmpty else { throw ContractViolation("the origin has no response to serve") }
    setRoute(path, Route(inTurn: responses.map(Self.originResponse)))
    return url(path)
  }

  public func received(at url: URL) async -> [ContractRequest] {
    requests(for: url.path(percentEncoded: true)).map { ContractRequest(head: $0.head, body: $0.body, connection: $0.connection) }
  }

  public func waitForRequestBody(at url: URL, bytes: Int) async {
    await waitForRequestBody(path: url.path(percentEncoded: true), bytes: bytes)
  }

  public func bodyBytesSent(at url: URL) async -> Int? { counters(for: url.path(percentEncoded: true)).bodyBytesSent }

  /// Returns a URL with port 1 of this machine. The port of a stopped origin is not suitable, because the system may assign it to
  /// another one.
  public func refusingURL() async throws -> URL {
    guard let url = URL(string: "http://127.0.0.1:1/refused") else { throw ContractViolation("invalid URL for a port") }
    return url
  }

  /// Returns a URL with a name that RFC 6761 §6.4 reserves.
  public func unresolvableURL() async throws -> URL {
    guard let url = URL(string: "http://no-such-host.invalid/") else { throw ContractViolation("invalid URL for a name") }
    return url
  }

  private static func originResponse(_ response: ContractResponse) -> OriginResponse {
    var delivery = OriginDelivery(
      interim: response.interim.map { OriginDelivery.Interim($0.status, fields: $0.headerFields) }, gate: response.gate,
      bodyGate: response.bodyGate, bodyGateOffset: response.body.count / 2, fault: fault(response.ending))
    switch response.framing {
    case .length: break
    case .chunks: delivery.framing = .chunked(of: 16_384)
    case .connection: delivery.framing = .untilClose
    case .claimed(let length): delivery.framing = .claimedLength(length)
    }
    return OriginResponse(
      response.body, fields: response.fields, status: response.status, honorsConditions: false, delivery: delivery)
  }

  private static func fault(_ ending: ContractResponse.Ending) -> OriginFault? {
    switch ending {
    case .complete: nil
    case .closesAfterwards: .closeAfterwards
    case .cut(let bytes): .cut(afterBodyBytes: bytes)
    case .reset(let bytes): .reset(afterBodyBytes: bytes)
    case .stall(let bytes): .stall(afterBodyBytes: bytes)
    case .trickle(let pause): .trickle(every: pause)
    case .closeBeforeHead: .closeBeforeHead
    case .resetBeforeHead: .resetBeforeHead
    case .stallBeforeHead: .stallBeforeHead
    case .cutInHead: .closeMidHead
    case .resetInHead: .resetMidHead
    case .trickleHead(let pause): .trickleHead(every: pause)
    case .endlessHead: .endlessHead
    case .raw(let bytes): .raw(bytes)
    }
  }
}
#endif
