public import CacheCore
public import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A downloader that uses Foundation's `URLSession`. It sends one request per download, returns every status as a response and
/// follows no redirects.
///
/// ```swift
/// let downloader = SessionDownloader()
/// let request = DownloadRequest(head: try HTTPRequest(resource: url))
/// let response = try await downloader.download(request)  // returns at the head
/// for try await chunk in response.body { print(chunk.count) }
/// ```
///
/// The downloader has one session, which ends with it. Transfers that are running when the downloader is released still complete.
/// Each request is a separate transfer. Request coalescing is the cache's task, which knows which responses may be shared.
///
/// `URLSession` has no back-pressure that works on all platforms. Bytes that a slow reader has not read are buffered in memory,
/// up to ``Configuration/bufferLimit``. For large bodies on a server, use `AsyncHTTPDownloader`. <doc:CacheNetworking> lists more
/// limits of Linux. The most serious one is that Foundation traps if a server closes the connection in the middle of the header
/// section. A URL whose host is an IPv6 literal fails on Linux with `CacheError.Code.unsupported`.
public final class SessionDownloader: Downloader {
  /// Unique for each downloader, because hooks and sessions cannot be compared.
  public let id: ComponentID

  private let transfers: TransferTable
  private let clock: any CacheClock
  private let watch: DeadlineTimer
  private let background: BackgroundHold
  /// The handler for challenges, which all sessions share.
  private let currentHandler: ReplaceableSetting<AuthenticationChallenge.Handler>
  private let observer: (@Sendable (SessionDelegate.Event) -> Void)?
  private let currentHooks = ReplaceableSetting(DownloaderHooks())

  /// Creates a downloader with its own session.
  ///
  /// A response to a request that `challengeHandler` authenticated is private to one user. The downloader sets its
  /// `Cache-Control` to `no-store`, because a cache cannot see the credential. It cannot do so for the credential of a connection
  /// (client certificate, Negotiate, NTLM). Use one downloader and one `partition` for each user in this case. Otherwise one
  /// user's responses are served to another.
  ///
  /// - Parameters:
  ///   - configuration: The settings.
  ///   - platform: The session configuration to start from, for settings that ``Configuration`` lacks (`protocolClasses`, TLS
  ///     versions). It is copied. Its cache, stored credentials, cookies, proxies and added fields are replaced by those of
  ///     `configuration`. If it is `nil`, the session starts from `URLSessionConfiguration.ephemeral`.
  ///   - clock: The clock for idleness and deadlines.
  ///   - backgroundTime: The provider of background execution time while transfers run, or `nil` for none. The default is the
  ///     application on iOS, tvOS and visionOS.
  ///   - challengeHandler: The hook that returns the credential for a challenge, see ``challengeHandler``.
  public convenience init(
    configuration: Configuration = Configuration(), platform: URLSessionConfiguration? = nil,
    clock: any CacheClock = SystemClock(), backgroundTime: (any BackgroundTime)? = SessionDownloader.defaultBackgroundTime,
    challengeHandler: AuthenticationChallenge.Handler = .init()
  ) {
    self.init(
      configuration: configuration, platform: platform, clock: clock, backgroundTime: backgroundTime,
      challengeHandler: challengeHandler, observer: nil)
  }

  /// - Parameter observer: Called when a transfer or a session ends.
  init(
    configuration: Configuration = Configuration(), platform: URLSessionConfiguration? = nil,
    clock: any CacheClock = SystemClock(), backgroundTime: (any BackgroundTime)? = nil,
    challengeHandler: AuthenticationChallenge.Handler = .init(), observer: (@Sendable (SessionDelegate.Event) -> Void)?
  ) {
    id = .unique(SessionDownloader.self)
    self.clock = clock
    currentHandler = ReplaceableSetting(challengeHandler)
    self.observer = observer
    watch = DeadlineTimer(clock: clock)
    background = BackgroundHold(backgroundTime)
    transfers = TransferTable(
      SessionEngine(
        configuration: configuration, platform: Self.copy(platform), challengeHandler: currentHandler, observer: observer))
  }

  /// Ends the session after its transfers.
  deinit { transfers.close(finishing: true)?.end() }

  /// The application on iOS, tvOS and visionOS. `nil` on other platforms, which suspend no process (macOS, Linux) or offer no
  /// such request (watchOS).
  public static var defaultBackgroundTime: (any BackgroundTime)? {
    #if canImport(UIKit) && !os(watchOS)
    ApplicationBackgroundTime()
    #else
    nil
    #endif
  }

  // MARK: Settings

  /// The settings. Setting them replaces the session, as ``replaceSession(configuration:platform:)`` does.
  public var configuration: Configuration {
    get { transfers.engine.configuration }
    set { replaceSession(configuration: newValue) }
  }

  /// The hooks, called at six stages of each download. A download uses the hooks that it began with.
  ///
  /// Set them before the first download, or in one assignment: changes of two hooks on two threads may lose one of them.
  ///
  /// ```swift
  /// let downloader = SessionDownloader()
  /// downloader.hooks.onRequestSent.delegate(on: watcher) { (watcher, exchange) in watcher.note("\(exchange.request)") }
  /// ```
  public var hooks: DownloaderHooks {
    get { currentHooks.value }
    set { currentHooks.value = newValue }
  }

  /// The hook that returns the credential for a challenge. It is called up to three times per request. Without a credential, the
  /// caller gets the 401 or 407 response. An error ends the download. On Linux it is called for Basic (RFC 7617) only.
  ///
  /// A new hook applies to the challenges that follow, in all running downloads.
  public var challengeHandler: AuthenticationChallenge.Handler {
    get { currentHandler.value }
    set { currentHandler.value = newValue }
  }

  /// Replaces the session. A parameter that is `nil` leaves its setting unchanged.
  ///
  /// Downloads that have begun complete in the old session with the old settings, even if their transfer has not started. Later
  /// requests use the new session. After ``close(finishingTransfers:)`` this does nothing.
  ///
  /// - Parameters:
  ///   - configuration: The settings.
  ///   - platform: The session configuration to start from. It is copied.
  public func replaceSession(configuration: Configuration? = nil, platform: URLSessionConfiguration? = nil) {
    let platform = Self.copy(platform)
    transfers.replace { engine in
      SessionEngine(
        configuration: configuration ?? engine.configuration, platform: platform ?? engine.platform,
        challengeHandler: currentHandler, observer: observer)
    }
  }

  private static func copy(_ platform: URLSessionConfiguration?) -> URLSessionConfiguration? {
    platform.flatMap { $0.copy() as? URLSessionConfiguration }
  }

  // MARK: Downloads

  /// Sends the request and returns at the head of the response, or with the whole body (`DownloadRequest.collectUpTo`).
  ///
  /// Cancelling the calling task, or releasing the body, stops the transfer.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try await download(request, as: DownloadTask())
  }

  /// Sends the request and returns at the head of the response, or with the whole body (`DownloadRequest.collectUpTo`).
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - handle: A handle for this download alone. Its `cancel()` may be called at any time, also before the download begins.
  /// - Throws: `CacheError.Code.misuse` if the handle was used before.
  public func download(_ request: DownloadRequest, as handle: DownloadTask) async throws(CacheError) -> DownloadResponse {
    let began = clock.uptime
    try handle.begin()
    if let body = request.body { handle.whilePreparing { body.source.cancel() } }
    let deadline = request.timeout.map { limit in
      // The closure retains the handle, because the caller may release it. The deadline is removed with the body.
      watch.add(due: began + limit) { _ in
        handle.expire(after: limit)
        return nil
      }
    }
    do {
      return try await start(request, handle, deadline, began)
    } catch {
      handle.end()
      // If the handle was cancelled, its error is thrown instead of the error that the cancellation caused.
      throw error.isCancellation ? handle.cancellation ?? error : error
    }
  }

  /// Cancels every download of this URL, regardless of its fields. Tasks that wait for them fail with `CacheError.cancelled`.
  ///
  /// - Returns: The number of transfers that were stopped.
  @discardableResult
  public func cancel(url: URL) -> Int {
    let wanted = (try? HTTPRequest(resource: url))?.absoluteURL?.absoluteString ?? url.absoluteString
    let matching = transfers.all().filter { $0.url.absoluteString == wanted }
    for transfer in matching { transfer.cancel() }
    return matching.count
  }

  /// Cancels every download. New downloads may follow.
  ///
  /// - Returns: The number of transfers that were stopped.
  @discardableResult
  public func cancelAll() -> Int {
    let running = transfers.all()
    for transfer in running { transfer.cancel() }
    return running.count
  }

  /// Closes the downloader. Later downloads fail with `CacheError.Code.closed`. Later calls do nothing.
  ///
  /// - Parameter finishingTransfers: Whether running transfers may complete. Otherwise they are cancelled.
  public func close(finishingTransfers: Bool = false) {
    guard let engine = transfers.close(finishing: finishingTransfers) else { return }
    if !finishingTransfers { cancelAll() }
    engine.end()
  }

  // MARK: One download

  private func start(
    _ request: DownloadRequest, _ handle: DownloadTask, _ deadline: DeadlineTimer.ScheduledDeadline?, _ began: Duration
  ) async throws(CacheError) -> DownloadResponse {
    // Before the hooks, which are called for requests that are sent.
    guard !Task.isCancelled, !handle.isCancelled else { throw .cancelled }
    // Read once, because the session may be replaced meanwhile.
    let engine = transfers.engine
    try engine.configuration.check()
    var request = request
    request.head = engine.configuration.complete(request.head)
    let hooks = hooks
    guard hooks.isSet else { return try await send(request, in: engine, handle, deadline, began) }
    let exchange = try HookedExchange(hooks, &request)
    exchange.willStart()
    handle.awaitJudgment()
    let response: DownloadResponse
    do {
      response = try await send(request, in: engine, handle, deadline, began)
    } catch {
      let reason = error.isCancellation ? handle.cancellation ?? error : error
      exchange.finish(.failure(reason))
      throw reason
    }
    return try await admit(response, exchange, handle)
  }

  /// Passes the response to the hooks, in a task that the handle and the deadline can cancel.
  private func admit(
    _ response: DownloadResponse, _ exchange: HookedExchange, _ handle: DownloadTask
  ) async throws(CacheError) -> DownloadResponse {
    let judging = Task { () async -> Result<DownloadResponse, CacheError> in
      do throws(CacheError) {
        return .success(try await exchange.admit(response) { handle.cancellation })
      } catch {
        return .failure(error)
      }
    }
    handle.beginJudging { judging.cancel() }
    defer { handle.endJudging() }
    return try await withTaskCancellationHandler {
      await judging.value
    } onCancel: {
      judging.cancel()
    }.get()
  }

  /// Sends the request, with hooks or without.
  private func send(
    _ request: DownloadRequest, in engine: SessionEngine, _ handle: DownloadTask, _ deadline: DeadlineTimer.ScheduledDeadline?,
    _ began: Duration
  ) async throws(CacheError) -> DownloadResponse {
    let url = try Self.url(of: request.head)
    guard !Task.isCancelled, !handle.isCancelled else { throw .cancelled }
    let body = try await outgoingBody(of: request, in: engine, handle)
    // A cancelled body may end as if it were complete.
    guard !handle.isCancelled else { throw .cancelled }
    let transfer = try transfer(for: request, in: engine, url: url, body: body, startedAt: began)
    let source = try transfer.reader(priority: request.priority, deadline: deadline)
    guard handle.link(transfer) else { throw .cancelled }
    handle.didStart()
    let head = try await source.head()
    let received = transfer.takeCollected().map { ResourceBody($0) } ?? ResourceBody(length: transfer.bodyLength, source: source)
    return DownloadResponse(head: head, body: received, metrics: { transfer.metrics })
  }

  private func transfer(
    for request: DownloadRequest, in engine: SessionEngine, url: URL, body: OutgoingBody, startedAt: Duration
  ) throws(CacheError) -> SessionDataTask {
    let (configuration, delegate) = (engine.configuration, engine.delegate)
    var plan = TransferPlan(
      head: request.head, url: url, body: body, idleTimeout: request.idleTimeout ?? configuration.idleTimeout,
      networkAccess: request.networkAccess, proxy: try engine.routing.proxy(for: url), collectUpTo: request.collectUpTo)
    plan.onInterimResponse = request.onInterimResponse
    // Without `self`: transfers must complete after the downloader is released. The tables and the transfer retain each other
    // until the transfer ends.
    let (transfers, background, watch, clock) = (transfers, background, watch, clock)
    // Before the transfer starts, because this calls the system.
    background.enter()
    var isMade = false
    defer { if !isMade { background.leave() } }
    return try transfers.start(in: engine) { [plan] in
      let transfer = SessionDataTask(
        Self.task(for: plan, in: engine), queue: engine.session.delegateQueue, plan: plan,
        bufferLimit: configuration.bufferLimit, startedAt: startedAt
      ) { transfer, error in
        transfers.leave(transfer)
        delegate.unregister(transfer, error)
        background.leave()
      }
      isMade = true
      delegate.register(transfer, clock: clock)
      transfer.watchIdleness(watch, at: clock.uptime)
      return transfer
    }
  }

  private static func url(of head: HTTPRequest) throws(CacheError) -> URL {
    var head = head
    try head.convertHost()
    guard let url = head.absoluteURL else { throw CacheError(.invalidURL, reason: "the request has no URL") }
    guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
      throw CacheError(.unsupportedScheme, reason: "the URL scheme is neither http nor https", url: url.address)
    }
    guard let host = url.host, !host.isEmpty else {
      throw CacheError(.invalidURL, reason: "the URL has no host", url: url.address)
    }
    return url
  }

  private func outgoingBody(
    of request: DownloadRequest, in engine: SessionEngine, _ handle: DownloadTask
  ) async throws(CacheError) -> OutgoingBody {
    guard let body = request.body else { return .none }
    do throws(CacheError) {
      // Checked before the body is collected, so that it is not written to disk for nothing.
      guard request.head.method == .get else { return try await engine.configuration.spooling.collect(body) }
      guard try await body.isEmpty() else {
        body.source.cancel()
        throw CacheError(.invalidConfiguration, reason: "URLSession cannot send a GET request with a body")
      }
      return .none
    } catch {
      // A cancelled body may fail with another error. The handle's error takes precedence.
      throw handle.cancellation ?? error
    }
  }
}

extension ResourceBody {
  /// Whether the body is empty, by its length or by its end. Reads at most the first bytes.
  fileprivate func isEmpty() async throws(CacheError) -> Bool {
    if let data { return data.isEmpty }
    if let length, length > 0 { return false }
    while let chunk = try await source.next() {
      if !chunk.isEmpty { return false }
    }
    return true
  }
}

/// A setting of a downloader that may be replaced while downloads read it.
final class ReplaceableSetting<Value: Sendable>: Sendable {
  private let current: Lock<Value>

  init(_ value: Value) { current = Lock(value) }

  var value: Value {
    get { current.withLock { $0 } }
    set {
      // The old value is released outside the lock, because that may run code of the app.
      let old = current.withLock { current in
        defer { current = newValue }
        return current
      }
      withExtendedLifetime(old) {}
    }
  }
}
