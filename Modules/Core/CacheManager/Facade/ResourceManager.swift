public import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Loads resources, caches them in memory and on disk, and revalidates them.
///
/// The manager depends only on the protocols of its components. It has no session, file or decoder of its own. `Etagere` provides
/// the defaults. Every component can be replaced here for all loads, and most of them in `RequestOptions` for one load:
/// <doc:/CacheManager> lists the others.
///
/// ```swift
/// let resource = try await manager.load(url)
/// print(resource.data.count, resource.source, resource.validation, resource.age)
/// ```
///
/// Each load ends exactly once, with a value, an error or a cancellation, even if the manager is released meanwhile.
public final class ResourceManager: Sendable {
  /// The components and settings of a manager. Every component is optional. Without a downloader the manager is only a cache.
  /// Without a validator it is a plain cache with a time to live.
  ///
  /// With a number out of its range, here or in a component, each load fails with `CacheError.Code.invalidConfiguration`. The
  /// error names the setting and its value.
  public struct Configuration: Sendable {
    /// The downloader for `http` and `https` requests.
    public var downloader: (any Downloader)?
    /// The downloaders for other schemes, such as `file` and `data`, by scheme in lower case.
    public var schemeHandlers: [String: any Downloader] = [:]
    /// The store in memory.
    public var memory: (any MemoryStoring)?
    /// The durable store.
    public var store: (any CacheStore)?
    /// The processes that share the durable store, or `nil` if each process sends its own requests.
    public var fleet: (any CacheFleet)?
    /// The validator, which makes the decisions of HTTP caching.
    public var validator: (any ResponseValidator)?
    /// The observer, which receives the events of all loads.
    public var observer: (any LoadObserver)?
    /// The clock.
    public var clock: any CacheClock = SystemClock()
    /// The interceptor, which changes or refuses the requests of all loads.
    public var interceptor: RequestInterceptor?
    /// The function that gives cache keys to requests without a `RequestOptions.key`. With `nil`, the key is the URL.
    ///
    /// ```swift
    /// configuration.cacheKey = { request in
    ///   guard request.authority == "bucket.example" else { return nil }
    ///   return request.path?.split(separator: "?").first.map(String.init)  // the signature is in the query
    /// }
    /// ```
    ///
    /// It applies wherever a URL or a request names a resource: to loads, prefetches, lookups, removals, purges by URL,
    /// ``ResourceManager/respond(to:body:options:onInterimResponse:)``, and the targets of redirects. The request is still sent
    /// to its own URL.
    ///
    /// The function receives the request after the stage `willLookUp` of a `RequestInterceptor`, always with the method GET. If
    /// that stage or the caller's fields could change the key, it also receives the caller's URL alone, because
    /// ``ResourceManager/cancel(_:options:)`` finds a load by that. A purge by URL and the invalidation by an unsafe request have
    /// no fields, so they do not find a key that depends on fields.
    ///
    /// It must return the same key for the same resource each time. It runs on the caller's thread, so it must return quickly. A
    /// result of `nil` or an empty text means the URL. The manager retains the function and everything that it captures. See
    /// <doc:/Etagere/PresignedURLsAndCacheKeys>.
    public var cacheKey: (@Sendable (HTTPRequest) -> String?)?
    /// The executor on which values are decoded and processed, such as a queue (`ProcessingExecutor`), or `nil` for the
    /// cooperative pool.
    public var executor: (any TaskExecutor)?
    /// The number of values that are decoded, processed or encoded at once, at least 1. The default is the number of processors.
    /// Further work waits by priority and does not delay transfers. A first step that is a caller's closure
    /// (`ResourceTransform(id:cost:make:)`) does not count, because it may wait.
    public var maximumConcurrentTransforms = ProcessInfo.processInfo.activeProcessorCount
    /// The queue on which callbacks run.
    public var callbackQueue: CallbackQueue = .platformDefault
    /// The policy for the use of stored responses, unless the request has its own.
    public var policy: LoadPolicy = .standard
    /// The stored responses that may be used if a load fails, unless the request has its own setting.
    public var staleFallback: StaleFallback = .standard
    /// The policy for the durable storage of originals and transformed values, unless the request has its own.
    public var storagePolicy: StoragePolicy = .automatic
    /// The timeout of a whole load, greater than zero, or `nil` for no limit while bytes arrive. A load whose stored response may
    /// be used instead of a late one then has a tenth of this time, at least 100 ms, to read it.
    public var timeout: Duration?
    /// The longest time that a load waits for the durable store to write, at least zero, or `nil` to wait until each write has
    /// ended. A longer write continues without the load, so a slow disk does not delay loads. A request can have its own limit.
    ///
    /// The data of these writes is in memory. While 256 of them continue without a load, further responses are not stored in
    /// the durable store, and the observer receives `CacheEvent.storeFailed` with `CacheError.Code.overloaded`.
    ///
    /// If the next chunk of an arriving body has waited ten times as long, the body is not stored. Some writes have a hundred
    /// times as long (10 seconds with the default): the removals of an unsafe request, and each write of a load into the store
    /// alone. That load then fails.
    public var storeWriteTimeout: Duration? = .milliseconds(100)
    /// The longest time that a load waits for one read of the durable store, such as a lookup, at least zero, or `nil` to wait
    /// until the read has ended. After it, the read has failed with `CacheError.Code.overloaded`. The observer receives
    /// `CacheEvent.readFailed`, and the load continues as if the store had nothing. While 256 reads continue without a load,
    /// further reads fail at once.
    ///
    /// A store with `CacheStore.boundsLookupTime` ends its lookups itself. The limit does not apply to stored bodies that
    /// ``ResourceManager/respond(to:body:options:onInterimResponse:)`` streams, because their readers can leave.
    public var storeReadTimeout: Duration? = .seconds(5)
    /// The statuses that count as success.
    public var acceptedStatuses = AcceptedStatuses.success
    /// The maximum number of redirects that a load follows, at least zero. With 0, a redirect is a response like any other.
    public var redirectLimit = 10
    /// Whether a redirect may lead from https to http. The default is `false`, because an attacker on the network could read and
    /// change a resource that was requested over a trusted connection.
    public var allowsInsecureRedirects = false
    /// The networks that loads may use.
    public var networkAccess = NetworkAccess.all
    /// The largest body that a load accepts, in bytes, at least zero. The load holds the body in memory.
    public var maximumBodySize: Int64 = 256 << 20
    /// The memory that loads may use at the same time, in bytes, for arriving bodies and for making values, at least 1. A load
    /// over budget waits, by priority, before it sends its request. If bodies grow beyond the budget, one at a time continues.
    /// See <doc:MemoryBudget> for the rules.
    public var memoryBudget = 256 << 20
    /// The largest body that `respond(to:)` holds in memory, in bytes, at least zero. Larger bodies stream between the origin,
    /// the durable store and the caller.
    public var maximumBodyInMemory: Int64 = 4 << 20
    /// The folder for the bytes of bodies that several callers of `respond(to:)` read, or are expected to read: those before the
    /// last 256 KiB, if the body is not in memory. Their files have no names, and their space is free when the callers have left.
    ///
    /// The default is the temporary folder of the system. On some systems, that folder is in memory.
    public var temporaryFolder = FileManager.default.temporaryDirectory
    /// The most bytes that these files have together, at least zero. Beyond it, a body breaks off for callers that are more than
    /// 256 KiB behind, and a body with one caller is not kept for further ones.
    public var maximumTemporaryBytes: Int64 = 1 << 30
    /// The longest time that a request of `respond(to:)` waits for the response to an equal request, at least zero, before it is
    /// sent to the origin itself (RFC 9111 §4). With `nil`, each request is sent at once. The wait ends with the head of that
    /// response.
    ///
    /// With a ``fleet``, any request waits for another process at most half as long, until the whole response is stored. With
    /// `nil`, no request waits for another process.
    public var collapseTimeout: Duration? = .seconds(5)
    /// The name of the cache in `Cache-Status` (RFC 9211), or `nil` to omit the field.
    public var cacheName: String? = "Etagere"

    /// Creates a configuration without components and with the default settings.
    public init() {}

    /// Creates a configuration without components and with the default settings, then applies `change`.
    public init(_ change: (inout Configuration) -> Void) { change(&self) }
  }

  /// The components and settings of the manager.
  public let configuration: Configuration
  let core: LoadCoordinator

  /// Creates a manager from the given components.
  ///
  /// ```swift
  /// let manager = ResourceManager(
  ///   .init {
  ///     $0.downloader = engine
  ///     $0.memory = MemoryCache()
  ///     $0.store = store
  ///     $0.validator = ETagValidator()
  ///   })
  /// ```
  public init(_ configuration: Configuration) {
    self.configuration = configuration
    core = LoadCoordinator(configuration)
  }

  // MARK: async

  /// Loads the bytes of a URL.
  ///
  /// ```swift
  /// do throws(CacheError) {
  ///   show(try await manager.load(url).data)
  /// } catch {
  ///   if !error.isCancellation { report(error) }
  /// }
  /// ```
  ///
  /// - Throws: `CacheError`. If the calling task is cancelled and memory has no hit, the error is `CacheError.cancelled`. No load
  ///   throws `CancellationError`.
  public func load(_ url: URL, options: RequestOptions = RequestOptions()) async throws(CacheError) -> Resource<Data> {
    if let hit: Resource<Data> = core.hit(url, options, "") { return hit }
    if options.storage == nil, core.flights.hasListed, let (flight, start, id) = core.joinable(url) {
      let ending = await flight.ending(WaiterNeeds(isCounted: true))
      if case .output(let exchange)? = ending, !exchange.isBodyLeft { return core.resource(exchange, startedAt: start) }
      return try await core.resource(of: url, id, after: ending, startedAt: start)
    }
    return try await loadMissed(url, options)
  }

  /// Loads the bytes of a request.
  ///
  /// ```swift
  /// let request = ResourceRequest(url, headerFields: [.acceptLanguage: "de"])
  /// let page = try await manager.load(request).data
  /// ```
  ///
  /// - Throws: `CacheError`, which is `CacheError.cancelled` if the calling task is cancelled.
  public func load(_ request: ResourceRequest) async throws(CacheError) -> Resource<Data> {
    if request.isPlain { return try await load(request.url) }
    return try await load(request, as: .bytes)
  }

  /// Loads a URL and transforms its bytes.
  ///
  /// ```swift
  /// let text = try await manager.load(url, as: greeting).value
  /// ```
  ///
  /// - Throws: `CacheError`, which is `CacheError.cancelled` if the calling task is cancelled.
  public func load<Value: Sendable>(
    _ url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> Resource<Value> {
    try await load(ResourceRequest(url, options: options), as: transform)
  }

  /// Loads a request and transforms its bytes. A hit in memory returns without suspending.
  ///
  /// - Throws: `CacheError`, which is `CacheError.cancelled` if the calling task is cancelled.
  public func load<Value: Sendable>(
    _ request: ResourceRequest, as transform: ResourceTransform<Value>
  ) async throws(CacheError) -> Resource<Value> {
    if let hit = core.hit(request, transform) { return hit }
    return try await loadMissed(request, as: transform)
  }

  /// Loads a URL that was not a plain hit in memory. It is out of line, because each of the thousands of loads that may wait for
  /// a flight would reserve memory for it.
  @inline(never)
  private func loadMissed(_ url: URL, _ options: RequestOptions) async throws(CacheError) -> Resource<Data> {
    try await loadMissed(ResourceRequest(url, options: options), as: .bytes)
  }

  /// Loads a request that was not a plain hit in memory.
  private func loadMissed<Value: Sendable>(
    _ request: ResourceRequest, as transform: ResourceTransform<Value>
  ) async throws(CacheError) -> Resource<Value> {
    try await core.outcome(of: ResolvedRequest(request, core), transform).get()
  }

  // MARK: Ending

  /// Ends the loads of a URL that have begun before the call, with `CacheError.cancelled`. Their transfers stop.
  ///
  /// ```swift
  /// manager.cancel(url)
  /// ```
  ///
  /// It ends loads of every form, with any method and fields, also a POST or a HEAD. It ends waiting and running prefetches, and
  /// revalidations in the background. The next load of the URL begins anew. Does nothing if there are none, or if the URL is
  /// invalid.
  ///
  /// It calls no interceptor, and the other options have no effect. If an interceptor changes requests for several URLs to one
  /// request, their loads share a transfer and end together. A `cacheKey` that depends on fields gets a request without any.
  ///
  /// It does not end ``respond(to:body:options:onInterimResponse:)``, ``store(_:for:freshFor:headerFields:options:)``, and loads
  /// of another URL that redirects to this one. A load into a file whose body is complete may return its file.
  ///
  /// - Parameters:
  ///   - url: The URL of the loads, as the callers have passed it.
  ///   - options: The options that select the resource: `key` and `partition`. Loads with another key or partition continue.
  public func cancel(_ url: URL, options: RequestOptions = RequestOptions()) {
    let name = RequestSettings.name(of: url, key: options.key, options.partition, configuration.cacheKey)
    // No load begins for a request that cannot be made.
    if let name { core.cancelLoads(of: CacheKey(resource: name)) }
  }

  /// Ends all loads that have begun before the call: see ``cancel(_:options:)``. Later loads are not affected.
  public func cancelAll() { core.cancelLoads(of: nil) }

  /// Rejects new loads, cancels background revalidations, and returns when every running load has ended. It also waits for late
  /// writes to the durable store, at most a hundred times as long as ``Configuration/storeWriteTimeout``, or as the longest limit
  /// of their loads if that is `nil`. A load without a limit of its own runs until its writes have ended, so the call waits for
  /// them however long they take. ``close(within:)`` does not.
  ///
  /// Bodies of ``respond(to:body:options:onInterimResponse:)`` that are still being read continue. Bodies that are read to the
  /// end are stored.
  ///
  /// The stores and the downloader stay open, because other code may use them.
  public func close() async { _ = await core.close() }

  /// Closes the manager like ``close()``, but ends the loads that are still running after `limit` with `CacheError.Code.closed`.
  /// With zero or less, they end at once.
  ///
  /// ```swift
  /// let endedInTime = await manager.close(within: .seconds(5))
  /// ```
  ///
  /// A load may be looking up a store whose `CacheStore.boundsLookupTime` is true. It ends after that lookup, which may be
  /// after `limit`. It then returns a hit, or fails with `CacheError.Code.closed`.
  ///
  /// - Returns: Whether all loads and all writes to the stores ended within `limit`. Longer writes continue after the call.
  @discardableResult
  public func close(within limit: Duration) async -> Bool { await core.close(within: limit) }
}
