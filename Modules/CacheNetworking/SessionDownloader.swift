public import CacheCore
public import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The engine on Foundation's `URLSession`: one hop per request, every status an answer, redirects not followed.
///
/// ```swift
/// let downloader = SessionDownloader()
/// let request = DownloadRequest(head: try HTTPRequest(resource: url))
/// let response = try await downloader.download(request)  // returns at the head
/// for try await chunk in response.body { print(chunk.count) }
/// ```
///
/// Equal requests that run at the same time share one transfer; see ``Configuration/sharesTransfers``. One session lives as long as the downloader. A
/// downloader that is released lets its transfers come to their end.
///
/// `URLSession` has no back-pressure that works everywhere, so what a slow reader has not taken is held in memory; for large bodies on a server use the
/// engine on SwiftNIO. On Linux there are more limits, listed in `Docs/CacheNetworking.md`: the gravest is that Foundation traps when
/// a server closes in the middle of the header section.
public final class SessionDownloader: Downloader {
  /// Unlike any other's: hooks and sessions can't be compared.
  public let id: ComponentID
  /// How it asks.
  public let configuration: Configuration
  /// Where hooks are set.
  public let delegate: SessionDelegate

  private let session: URLSession
  private let transfers = TransferTable()
  private let clock = SystemClock()

  /// A downloader with a session of its own.
  ///
  /// - Parameters:
  ///   - configuration: how it asks.
  ///   - delegate: held strongly, by the session too, until the last transfer has ended.
  public init(configuration: Configuration = Configuration(), delegate: SessionDelegate = SessionDelegate()) {
    id = .unique(SessionDownloader.self)
    self.configuration = configuration
    self.delegate = delegate
    session = URLSession(configuration: configuration.session, delegate: delegate, delegateQueue: nil)
  }

  /// Ends the session once its transfers have ended; without this it would never go away. An invalidated session takes no more tasks, and nobody is
  /// left who could ask for one.
  deinit {
    if transfers.close() { session.finishTasksAndInvalidate() }
  }

  /// Sends the request and returns at the head of the answer.
  ///
  /// Cancelling the calling task, or letting go of the body, gives up this request's share of the transfer; the last one stops it.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try await download(request, as: DownloadTask())
  }

  /// Sends the request and returns at the head of the answer; `handle` can cancel it from elsewhere, also before it has begun.
  ///
  /// - Parameters:
  ///   - request: what to ask for.
  ///   - handle: for this download alone.
  public func download(_ request: DownloadRequest, as handle: DownloadTask) async throws(CacheError) -> DownloadResponse {
    try handle.begin { request.body?.source.cancel() }
    do {
      return try await start(request, handle)
    } catch {
      handle.end()
      throw error
    }
  }

  /// Cancels every download of this URL, whatever its fields. Those who wait for them end with `CacheError.cancelled`.
  ///
  /// - Returns: how many transfers were stopped.
  @discardableResult
  public func cancel(url: URL) -> Int {
    let wanted = (try? HTTPRequest(resource: url))?.absoluteURL?.absoluteString ?? url.absoluteString
    let matching = transfers.all().filter { $0.url.absoluteString == wanted }
    for transfer in matching { transfer.forceCancel() }
    return matching.count
  }

  /// Cancels every download; new ones may follow.
  ///
  /// - Returns: how many transfers were stopped.
  @discardableResult
  public func cancelAll() -> Int {
    let running = transfers.all()
    for transfer in running { transfer.forceCancel() }
    return running.count
  }

  /// Ends the downloader: later downloads fail with `CacheError.Code.closed`. Later calls do nothing.
  ///
  /// - Parameter finishingTransfers: whether what runs may come to its end; else it is cancelled.
  public func close(finishingTransfers: Bool = false) {
    guard transfers.close() else { return }
    guard !finishingTransfers else { return session.finishTasksAndInvalidate() }
    cancelAll()
    session.invalidateAndCancel()
  }

  // MARK: One download

  private func start(_ request: DownloadRequest, _ handle: DownloadTask) async throws(CacheError) -> DownloadResponse {
    let began = clock.uptime
    if let field = configuration.misplacedCredential {
      throw CacheError(
        .invalidConfiguration,
        reason: "\(field) must not stand in additionalHeaders, where a cache does not see it: set it in the request")
    }
    let url = try Self.url(of: request.head)
    guard !Task.isCancelled, !handle.isCancelled else { throw .cancelled }
    let body = try await Self.collect(request, handle)
    let (transfer, token) = try enter(request, url: url, body: body, startedAt: began)
    let share = TransferBody(transfer, token)
    guard handle.link(transfer, token) else { throw .cancelled }
    rank(transfer, by: request.priority)
    transfer.resume()
    handle.didStart()
    let head = try await share.head()
    // By this request's own clock: who joins late has not waited as long as the first.
    let timeToHead = clock.uptime - began
    return DownloadResponse(
      head: head, body: Body(length: transfer.bodyLength, source: share),
      metrics: {
        var metrics = transfer.metrics
        metrics.timeToHead = timeToHead
        return metrics
      })
  }

  private func enter(
    _ request: DownloadRequest, url: URL, body: Data?, startedAt: Duration
  ) throws(CacheError) -> (SessionDataTask, SessionDataTask.CancelToken) {
    let idleTimeout = request.idleTimeout ?? configuration.idleTimeout
    let isShared =
      configuration.sharesTransfers && request.mayShare && body == nil && [.get, .head].contains(request.head.method)
    let key = isShared ? TransferTable.Key(request: request.head, idleTimeout: idleTimeout) : nil
    let platform = Self.urlRequest(
      request.head, url: url, body: body, idleTimeout: idleTimeout, configuration: configuration)
    // Not `self`: a downloader that is released must not take the end of its transfers with it. The tables and the transfer hold each other, until the
    // transfer ends.
    let (transfers, delegate) = (transfers, delegate)
    return try transfers.enter(key) {
      let transfer = SessionDataTask(
        session.dataTask(with: platform), request: request.head, url: url, joinLimit: isShared ? configuration.joinLimit : 0,
        startedAt: startedAt
      ) { transfer, error in
        transfers.leave(transfer, key)
        delegate.unregister(transfer, error)
      }
      delegate.register(transfer)
      return transfer
    }
  }

  private func rank(_ transfer: SessionDataTask, by priority: LoadPriority) {
    // First the observer: a rise in between would be lost.
    priority.onRaise { [weak transfer] level in transfer?.raise(to: level) }
    transfer.raise(to: priority.level)
  }

  private static func url(of head: HTTPRequest) throws(CacheError) -> URL {
    guard let url = head.absoluteURL else { throw CacheError(.invalidURL, reason: "the request names no URL") }
    guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
      throw CacheError(.unsupportedScheme, reason: "only http and https can be downloaded", url: url.absoluteString)
    }
    guard let host = url.host, !host.isEmpty else {
      throw CacheError(.invalidURL, reason: "the URL has no host", url: url.absoluteString)
    }
    return url
  }

  private static func collect(_ request: DownloadRequest, _ handle: DownloadTask) async throws(CacheError) -> Data? {
    guard let body = request.body else { return nil }
    let data: Data
    do {
      data = try await body.collect(limit: requestBodyLimit)
    } catch {
      // The handle's cancel reaches the body, whose own words for it don't matter.
      throw handle.isCancelled ? .cancelled : error
    }
    guard request.head.method != .get || data.isEmpty else {
      throw CacheError(.invalidConfiguration, reason: "URLSession sends no GET with a body")
    }
    return data
  }
}
