public import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A downloader that returns scripted responses in order, and fails on any other request.
///
/// A request that permits it (`DownloadRequest.collectUpTo`) gets the body in one piece, unless the script holds, cuts or chunks
/// the body or omits its length.
///
/// ```swift
/// let network = ScriptedDownloader()
/// network.respond(to: url, with: .ok("old", etag: #""1""#), .notModified())
/// // … the code under test …
/// try network.verify()   // throws after an unscripted request or with unused responses
/// ```
public final class ScriptedDownloader: Downloader {
  private struct State {
    var script: [String: [ScriptedResponse]] = [:]
    var servers: [String: @Sendable (HTTPRequest) -> ScriptedResponse] = [:]
    var requests: [(head: HTTPRequest, body: Data)] = []
    var unscripted: [HTTPRequest] = []
    var cancelledBodies = 0
  }

  public let id = ComponentID.unique(ScriptedDownloader.self)
  private let clock: any CacheClock
  private let state = Lock(State())

  /// Creates a downloader without scripted responses.
  ///
  /// - Parameter clock: The clock for ``ScriptedResponse/after(_:)``.
  public init(clock: any CacheClock = ManualClock()) { self.clock = clock }

  /// Appends responses for a URL. Each is used once.
  public func respond(to url: URL, with responses: ScriptedResponse...) {
    state.withLock { $0.script[Self.name(url), default: []] += responses }
  }

  /// Sets a closure that responds to the requests for a URL that have no scripted response.
  public func serve(_ url: URL, _ server: @escaping @Sendable (HTTPRequest) -> ScriptedResponse) {
    state.withLock { $0.servers[Self.name(url)] = server }
  }

  /// The requests so far, in order.
  public var requests: [HTTPRequest] { state.withLock { $0.requests.map(\.head) } }

  /// Returns the requests for a URL, in order.
  public func requests(for url: URL) -> [HTTPRequest] {
    let name = Self.name(url)
    return requests.filter { Self.name($0) == name }
  }

  /// Returns the bodies of the requests for a URL, in order. A request without a body has an empty one.
  public func requestBodies(for url: URL) -> [Data] {
    let name = Self.name(url)
    return state.withLock { $0.requests.filter { Self.name($0.head) == name }.map(\.body) }
  }

  /// The requests without a scripted response.
  public var unscripted: [HTTPRequest] { state.withLock { $0.unscripted } }

  /// The number of bodies that were released before their end.
  public var cancelledBodies: Int { state.withLock { $0.cancelledBodies } }

  /// Checks the script.
  ///
  /// - Throws: `CacheError.Code.unscripted` if a request had no scripted response, or a scripted response was not used.
  public func verify() throws(CacheError) {
    let (unscripted, left) = state.withLock { ($0.unscripted, $0.script.filter { !$0.value.isEmpty }) }
    guard unscripted.isEmpty && left.isEmpty else {
      let unscriptedRequests = unscripted.map { "unscripted request: \(Self.name($0))" }
      let unusedResponses = left.map { "unused responses: \($0.value.count) for \($0.key)" }.sorted()
      throw CacheError(.unscripted, reason: (unscriptedRequests + unusedResponses).joined(separator: "; "))
    }
  }

  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    if Task.isCancelled { throw .cancelled }
    let began = clock.uptime
    let name = Self.name(request.head)
    let sent = try await request.body?.collect() ?? Data()
    let scripted: ScriptedResponse? = state.withLock { state in
      state.requests.append((request.head, sent))
      if var left = state.script[name], !left.isEmpty {
        let next = left.removeFirst()
        state.script[name] = left
        return next
      }
      if let server = state.servers[name] { return server(request.head) }
      state.unscripted.append(request.head)
      return nil
    }
    guard let scripted else { throw CacheError(.unscripted, reason: "no scripted response for \(request.head.method) \(name)") }
    if scripted.delay > .zero {
      do {
        try await clock.sleep(for: scripted.delay)
      } catch {
        throw .cancelled
      }
    }
    if let report = request.onInterimResponse { scripted.interim.forEach(report) }
    await scripted.gate?.pass()
    if Task.isCancelled { throw .cancelled }
    switch scripted.outcome {
    case .failure(let error): throw error
    case .response(let head, let body):
      return response(
        scripted.head(head, of: body, to: request.head), request.head.method == .head ? Data() : body, scripted, began: began,
        collectUpTo: request.collectUpTo)
    }
  }

  private func response(
    _ head: HTTPResponse, _ body: Data, _ scripted: ScriptedResponse, began: Duration, collectUpTo: Int
  ) -> DownloadResponse {
    let timeToHead = clock.uptime - began
    if scripted.deliversAtOnce(body), head.isCollected(upTo: collectUpTo, length: Int64(body.count)) {
      let count = Int64(body.count)
      return DownloadResponse(
        head: head, body: ResourceBody(body),
        metrics: { TransferMetrics(timeToHead: timeToHead, total: timeToHead, bytesOnWire: count, bytesDecoded: count) })
    }
    let source = ScriptedBody(
      body, scripted, onEnd: { [clock] in clock.uptime - began },
      onCancel: { [weak self] in self?.state.withLock { $0.cancelledBodies += 1 } })
    return DownloadResponse(
      head: head, body: ResourceBody(length: scripted.statesLength ? Int64(body.count) : nil, source: source),
      metrics: {
        TransferMetrics(
          timeToHead: timeToHead, total: source.total, bytesOnWire: source.delivered, bytesDecoded: source.delivered)
      })
  }

  private static func name(_ url: URL) -> String { (try? HTTPRequest(resource: url)).map(name) ?? url.absoluteString }

  private static func name(_ request: HTTPRequest) -> String { ResourceID.uri(of: request) ?? (request.path ?? "") }
}
