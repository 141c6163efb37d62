public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Loads resources, caches them in memory and on disk, and keeps them honest.
///
/// It knows protocols only: no session, no file, no decoder. `Etagere` wires the defaults; every component can be replaced here
/// for all loads, or in `RequestOptions` for one.
///
/// ```swift
/// let resource = try await manager.load(url)
/// print(resource.data.count, resource.source, resource.validation, resource.age)
/// ```
///
/// Each load ends exactly once: with a value, an error, or a cancellation, also when the manager is released meanwhile.
public final class ResourceManager: Sendable {
  /// What a manager is made of. A component that is nil is not there: without a downloader it is a cache alone, without a
  /// validator a plain cache with a time to live.
  public struct Configuration: Sendable {
    /// Who asks the network, for `http` and `https`.
    public var downloader: (any Downloader)?
    /// Who answers for other schemes, by scheme in lower case: `file`, `data`.
    public var schemeHandlers: [String: any Downloader] = [:]
    /// The store in memory.
    public var memory: (any MemoryStoring)?
    /// The durable store.
    public var store: (any CacheStore)?
    /// Who decides about HTTP caching.
    public var validator: (any ResponseValidator)?
    /// Who is told what happens.
    public var observer: (any LoadObserver)?
    /// Time.
    public var clock: any CacheClock = SystemClock()
    /// Who changes or refuses each request before the cache is looked at.
    public var requestModifier: RequestModifier?
    /// Who decides about redirects; nil: they are followed by the rules.
    public var redirectHandler: RedirectHandler?
    /// Where values are decoded and processed: an executor, or a queue (`ProcessingQueue`). nil: the cooperative pool.
    public var executor: (any TaskExecutor)?
    /// How many values are decoded, processed or encoded at once, at least 1: by default as many as there are processors. Who
    /// waits for a place is let in by priority, and holds up no transfer. The first step of a transform that brings a closure of
    /// its own for it (`ResourceTransform(id:cost:make:)`) does not count: it may wait.
    public var maximumConcurrentTransforms = ProcessInfo.processInfo.activeProcessorCount
    /// Where callbacks are called.
    public var callbackQueue: CallbackQueue = .platformDefault
    /// Where answers may come from, unless the request says otherwise.
    public var policy: LoadPolicy = .standard
    /// What of each load goes into the durable store, unless the request says otherwise.
    public var storagePolicy: StoragePolicy = .automatic
    /// How long a whole load may take; nil: as long as bytes keep coming.
    public var timeout: Duration?
    /// How long, at most, a load waits for the durable store to take what it brings; nil: as long as that takes. What takes
    /// longer is done behind the load's back, so a slow disk makes no load slow, up to 256 pieces of work at once: what they
    /// store lies in memory, so beyond that loads wait to the end. And a body that is still coming is not stored where its next
    /// piece has waited ten times as long, unless others may read it along from the store. Loads into the store alone wait to the
    /// end.
    public var storeWriteTimeout: Duration? = .milliseconds(100)
    /// Statuses that are a success.
    public var acceptedStatuses = AcceptedStatuses.success
    /// How many redirects a load follows.
    public var redirectLimit = 10
    /// Whether a redirect may lead from https to http. It may not: what was asked for over a trusted connection would come over
    /// one that anybody on the way can read and change.
    public var allowsInsecureRedirects = false
    /// The networks that loads may use.
    public var networkAccess = NetworkAccess.all
    /// The largest body that a load takes, in bytes: it is held in memory.
    public var maximumBodySize: Int64 = 256 << 20
    /// How much memory the loads may take at the same time, in bytes: their bodies on the way, and what making values of them
    /// takes. Who finds no room waits before it asks for its body, by priority; of bodies that grow beyond it, one at a time goes
    /// on. What it counts, and what it does not, is told in the page on CacheManager.
    public var memoryBudget = 256 << 20
    /// The largest body, in bytes, that `respond(to:)` keeps in memory; larger ones stream between the origin, the durable store
    /// and the caller.
    public var maximumBodyInMemory: Int64 = 4 << 20
    /// How long a request of `respond(to:)` waits for what an equal one brings that is on its way to the origin, before it asks
    /// for itself (RFC 9111 §4); nil: each asks for itself at once. The wait ends with that answer's head, or where a body of
    /// unknown length has to be whole first, with its last byte.
    public var collapseTimeout: Duration? = .seconds(5)
    /// What the cache calls itself in `Cache-Status` (RFC 9211); nil: it adds no such field.
    public var cacheName: String? = "Etagere"

    /// No component at all, and the usual settings.
    public init() {}

    /// No component at all and the usual settings, but for what `change` sets.
    public init(_ change: (inout Configuration) -> Void) { change(&self) }
  }

  /// What the manager is made of.
  public let configuration: Configuration
  let core: LoadCoordinator

  /// A manager of the given components.
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
  /// - Throws: `CacheError`. If the calling task is cancelled, the error is `CacheError.cancelled`. No load throws
  ///   `CancellationError`.
  public func load(_ url: URL, options: RequestOptions = RequestOptions()) async throws(CacheError) -> Resource<Data> {
    try await load(ResourceRequest(url, options: options), as: .bytes)
  }

  /// Loads the bytes of a request.
  ///
  /// - Throws: `CacheError`, which is `CacheError.cancelled` if the calling task is cancelled.
  public func load(_ request: ResourceRequest) async throws(CacheError) -> Resource<Data> {
    try await load(request, as: .bytes)
  }

  /// Loads a URL and transforms its bytes.
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
    switch try core.begin(request, transform) {
    case .over(let result): return try result.get()
    case .underWay(let load, let known): return try await core.outcome(of: load, known: known, transform).get()
    }
  }

  // MARK: Ending

  /// Rejects new loads, cancels background revalidations, and returns when every running load has ended.
  ///
  /// Bodies of ``respond(to:body:options:)`` that are still being read go on. Whole bodies are stored.
  ///
  /// The stores and the downloader stay open, because their owner may use them elsewhere.
  public func close() async { await core.close() }

  /// Closes the manager like ``close()``, but ends the loads that are still running after `limit` with `CacheError.Code.closed`.
  ///
  /// ```swift
  /// let endedInTime = await manager.close(within: .seconds(5))
  /// ```
  ///
  /// - Returns: whether all loads and all writes to the stores ended within `limit`. Writes that take longer go on after the
  ///   call.
  @discardableResult
  public func close(within limit: Duration) async -> Bool { await core.close(within: limit) }
}
