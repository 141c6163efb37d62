#if Origin
internal import HTTPTypes
internal import NIOCore
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An HTTP/1.1 origin on the loopback interface that does what a test tells it, well or badly.
///
/// ```swift
/// import LoopbackOrigin
///
/// let origin = try await OriginServer.start()
/// origin.setRoute("/a.png", Route(picture, contentType: "image/png", etag: "v1"))
/// origin.setRoute("/broken", .fault(.cut(afterBodyBytes: 3)))
///
/// let answer = try await load(origin.url("/a.png"))       // 200, ETag: "v1"
/// let again = try await load(origin.url("/a.png"))        // If-None-Match: "v1" gets 304
///
/// #expect(origin.counters(for: "/a.png").notModified == 1)
/// #expect(origin.requests(for: "/a.png").last?.fields[.ifNoneMatch] == "\"v1\"")
/// await origin.stop()
/// ```
///
/// Paths are compared percent-encoded, as they stand on the wire. An origin that is dropped without `stop()` closes by itself,
/// a moment later.
public final class OriginServer: Sendable {
  /// The port it listens on.
  public let port: Int
  /// `http://127.0.0.1:<port>`, without a path.
  public let baseURL: URL

  private let core: OriginCore

  init(
    port: Int, link: NetworkLink?, now: @escaping @Sendable () -> Date, requestBodyLimit: Int, keptBodyLimit: Int, logLimit: Int
  ) async throws(OriginError) {
    do {
      core = try await OriginCore(
        routes: RouteTable(fallback: Route { Self.notFound($0) }), recorder: OriginRecorder(logLimit: logLimit),
        requestBodyLimit: requestBodyLimit, keptBodyLimit: keptBodyLimit, now: now, link: link)
      self.port = try await core.listen(port: port)
    } catch {
      throw OriginError(port: port, underlying: error)
    }
    baseURL = Self.url("http://127.0.0.1:\(self.port)")
  }

  deinit { core.shutDown() }

  /// Refuses new connections, closes those that are open, and returns when all are closed. Routes are forgotten and waiting
  /// calls return; counters and requests stay readable. A second call does nothing.
  ///
  /// On Linux the port stays reserved until the origin is released. Connections to it are refused, and no other server is
  /// given it as a free port.
  public func stop() async {
    // Never fails: what could not be closed was closed already.
    try? await core.shutDown().get()
  }

  // MARK: Routes

  /// The address of a path; characters that a URL cannot have are percent-encoded.
  public func url(_ path: String) -> URL { Self.url("http://127.0.0.1:\(port)\(Self.target(path))") }

  /// Sets, or replaces, what a path answers with. A path with a query is for that query alone; one without is for every query.
  public func setRoute(_ path: String, _ route: Route) { core.routes.set(route, for: Self.target(path)) }

  /// Leaves a path to the fallback again.
  public func removeRoute(_ path: String) { core.routes.set(nil, for: Self.target(path)) }

  /// Sets what answers where no route does; nil brings back 404 with a small text.
  public func setFallback(_ handler: (@Sendable (ReceivedRequest) async -> OriginAnswer)?) {
    core.routes.setFallback(Route(answering: handler ?? { Self.notFound($0) }))
  }

  /// Sets what a request must bring in `Proxy-Authorization` when its client takes the origin for a proxy, else it is answered
  /// 407 with `Proxy-Authenticate: Basic`; nil, as at the start: nothing. Ordinary requests are not concerned.
  ///
  /// As a proxy the origin forwards nothing: it answers targets in absolute form by their path, and CONNECT with 501.
  public func setProxyCredential(_ credential: OriginCredential?) { core.routes.setProxyCredential(credential) }

  // MARK: The link

  /// Replaces the link; nil is bare loopback. Packets under way arrive as they would have. When this returns with a link that
  /// is
  /// `offline`, every connection has been reset.
  public func setLink(_ link: NetworkLink?) async { await core.setLink(link) }

  // MARK: What was seen

  /// All that was counted since the start or the last reset.
  public var counters: OriginCounters { core.recorder.total }

  /// What was counted for one path, whatever its query.
  public func counters(for path: String) -> OriginCounters { core.recorder.counters(for: Self.path(path)) }

  /// All requests since the start or the last reset, in order.
  public var requests: [ReceivedRequest] { core.recorder.requests }

  /// The requests for one path, whatever their query. O(n) in the requests of all paths.
  public func requests(for path: String) -> [ReceivedRequest] {
    let path = Self.path(path)
    return core.recorder.requests.filter { $0.path == path }
  }

  /// Forgets requests and counts, but for the connections that are open.
  public func resetCounters() { core.recorder.reset() }

  /// Returns when so many requests for the path (nil: for any) have been counted, with those that are remembered. Returns early
  /// when the task is cancelled or the origin stops.
  @discardableResult
  public func waitForRequests(path: String? = nil, count: Int = 1) async -> [ReceivedRequest] {
    await core.recorder.waitForRequests(path: path.map(Self.path), count: count)
    return path.map { requests(for: $0) } ?? requests
  }

  /// Returns when so many bytes of request bodies have come for the path, those of requests included that are not complete: how a
  /// test sees that a client streams what it sends. Returns early when the task is cancelled or the origin stops.
  public func waitForRequestBody(path: String, bytes: Int) async {
    await core.recorder.waitForRequestBody(path: Self.path(path), bytes: bytes)
  }

  /// Returns when no more connections than these are open: how a test sees that a cancelled load has let go. Returns early when
  /// the task is cancelled or the origin stops.
  public func waitForOpenConnections(atMost count: Int = 0) async { await core.recorder.waitForOpenConnections(atMost: count) }

  // MARK: Addresses

  private static func notFound(_ request: ReceivedRequest) -> OriginAnswer {
    OriginAnswer(text: "nothing at \(request.path)\n", status: .notFound)
  }

  /// Every string that comes here is a URL by construction; the file URL is there for the type alone.
  private static func url(_ string: String) -> URL { URL(string: string) ?? URL(filePath: "/") }

  private static func path(_ path: String) -> String { String(target(path).prefix { $0 != "?" }) }

  /// A path as it stands on the wire: RFC 3986's characters stay, with escapes that are there already, others are escaped as
  /// UTF-8.
  private static func target(_ path: String) -> String {
    var target = path.hasPrefix("/") ? "" : "/"
    for byte in path.utf8 {
      if byte.isASCIILetterOrDigit || "-._~!$&'()*+,;=:@/?%".utf8.contains(byte) {
        target.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        target += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return target
  }
}

extension UInt8 {
  fileprivate var isASCIILetterOrDigit: Bool {
    (48...57).contains(self) || (65...90).contains(self) || (97...122).contains(self)
  }
}
#endif
