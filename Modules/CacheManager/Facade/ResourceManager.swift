public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Loads resources, caches them in memory and on disk, and keeps them honest.
///
/// It knows protocols only: no session, no file, no decoder. `Etagere` wires the defaults; every component can be replaced here for all loads, or in
/// `RequestOptions` for one.
///
/// ```swift
/// let resource = try await manager.load(url)
/// print(resource.data.count, resource.source, resource.validation, resource.age)
/// ```
///
/// Each load ends exactly once: with a value, an error, or a cancellation, also when the manager is released meanwhile.
public final class ResourceManager: Sendable {
  /// What a manager is made of. A component that is nil is not there: without a downloader it is a cache alone, without a validator a plain cache
  /// with a time to live.
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
    /// How many values are decoded, processed or encoded at once, at least 1: by default as many as there are processors. Who waits for a place is let in by
    /// priority, and holds up no transfer. The first step of a transform that brings a closure of its own for it (`ResourceTransform(id:cost:make:)`) does not count: it may wait.
    public var maximumConcurrentTransforms = ProcessInfo.processInfo.activeProcessorCount
    /// Where callbacks are called.
    public var callbackQueue: CallbackQueue = .platformDefault
    /// Where answers may come from, unless the request says otherwise.
    public var policy: LoadPolicy = .standard
    /// What of each load goes into the durable store, unless the request says otherwise.
    public var storagePolicy: StoragePolicy = .automatic
    /// How long a whole load may take; nil: as long as bytes keep coming.
    public var timeout: Duration?
    /// How long, at most, a load waits for the durable store to take what it brings; nil: as long as that takes. What takes longer is done behind the load's back, so
    /// a slow disk makes no load slow, up to 256 pieces of work at once: what they store lies in memory, so beyond that loads wait to the end. And a body that is still
    /// coming is not stored where its next piece has waited ten times as long, unless others may read it along from the store. Loads into the store alone wait to the end.
    public var storeWriteTimeout: Duration? = .milliseconds(100)
    /// Statuses that are a success.
    public var acceptedStatuses = AcceptedStatuses.success
    /// How many redirects a load follows.
    public var redirectLimit = 10
    /// Whether a redirect may lead from https to http. It may not: what was asked for over a trusted connection would come over one that anybody on the way can
    /// read and change.
    public var allowsInsecureRedirects = false
    /// The networks that loads may use.
    public var networkAccess = NetworkAccess.all
    /// The largest body that a load takes, in bytes: it is held in memory.
    public var maximumBodySize: Int64 = 256 << 20
    /// How much memory the loads may take at the same time, in bytes: their bodies on the way, and what making values of them takes. Who finds no room waits before it asks
    /// for its body, by priority; of bodies that grow beyond it, one at a time goes on. What it counts, and what it does not, is told in the page on CacheManager.
    public var memoryBudget = 256 << 20
    /// The largest body, in bytes, that `respond(to:)` keeps in memory; larger ones stream between the origin, the durable store and the caller.
    public var maximumBodyInMemory: Int64 = 4 << 20
    /// How long a request of `respond(to:)` waits for what an equal one brings that is on its way to the origin, before it asks for itself (RFC 9111 §4); nil: each asks
    /// for itself at once. The wait ends with that answer's head, or where a body of unknown length has to be whole first, with its last byte.
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
  let core: LoadCore

  /// A manager of the given components.
  public init(_ configuration: Configuration) {
    self.configuration = configuration
    core = LoadCore(configuration)
  }

  // MARK: async

  /// Loads a URL's bytes.
  ///
  /// - Throws: the one reason why there is no value; `CacheError.cancelled` when the calling task was cancelled.
  public func load(_ url: URL, options: RequestOptions = RequestOptions()) async throws(CacheError) -> Resource<Data> {
    try await load(ResourceRequest(url, options: options), as: .bytes)
  }

  /// Loads a request's bytes.
  public func load(_ request: ResourceRequest) async throws(CacheError) -> Resource<Data> {
    try await load(request, as: .bytes)
  }

  /// Loads a URL and makes a value of its bytes.
  public func load<Value: Sendable>(
    _ url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> Resource<Value> {
    try await load(ResourceRequest(url, options: options), as: transform)
  }

  /// Loads a request and makes a value of its bytes. A hit in memory returns without suspending.
  public func load<Value: Sendable>(
    _ request: ResourceRequest, as transform: ResourceTransform<Value>
  ) async throws(CacheError) -> Resource<Value> {
    switch try core.begin(request, transform) {
    case .over(let result): return try result.get()
    case .underWay(let load): return try await core.outcome(of: load, transform).get()
    }
  }

  // MARK: Events

  /// Loads a URL's bytes as a stream of events: progress, a stored value that may be outdated, the final value.
  public func events(for url: URL, options: RequestOptions = RequestOptions()) -> ResourceEvents<Data> {
    events(for: ResourceRequest(url, options: options), as: .bytes)
  }

  /// Loads a request as a stream of events, which starts when its first event is asked for.
  public func events<Value: Sendable>(for request: ResourceRequest, as transform: ResourceTransform<Value>) -> ResourceEvents<
    Value
  > {
    ResourceEvents { [core] channel in
      do throws(CacheError) {
        switch try core.begin(request, transform) {
        case .over(let result): channel.finish(with: result)
        case .underWay(let load):
          let task = LoadTask(priority: LoadPriority(load.priority))
          channel.onAbandon { task.cancel() }
          core.start(
            load, transform, task,
            .init(
              event: { channel.send($0) },
              end: { channel.finish(with: $0) }, endsWithStale: false))
        }
      } catch {
        channel.fail(error)
      }
    }
  }

  // MARK: Callbacks

  /// Loads a URL's bytes and calls back, once.
  ///
  /// - Parameters:
  ///   - url: what to load.
  ///   - options: what this load sets for itself; the rest comes from the manager.
  ///   - progress: called in order, one at a time, on the same queue as `completion` (a serial one), and never after it.
  ///   - completion: called exactly once, on the options' or the manager's `CallbackQueue`. There is no load without it: nothing is started that
  ///     nobody waits for.
  @discardableResult
  public func load(
    _ url: URL, options: RequestOptions = RequestOptions(), progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Data>, CacheError>) -> Void
  ) -> LoadTask {
    load(ResourceRequest(url, options: options), as: .bytes, progress: progress, completion: completion)
  }

  /// Loads a request, makes a value of its bytes, and calls back, once.
  @discardableResult
  public func load<Value: Sendable>(
    _ request: ResourceRequest, as transform: ResourceTransform<Value>, progress: (@Sendable (LoadProgress) -> Void)? = nil,
    completion: @escaping @Sendable (Result<Resource<Value>, CacheError>) -> Void
  ) -> LoadTask {
    let task = LoadTask(priority: LoadPriority(request.options.priority))
    let callbacks = Callbacks(
      queue: request.options.callbackQueue ?? configuration.callbackQueue, progress: progress, completion: completion)
    do throws(CacheError) {
      switch try core.begin(request, transform) {
      case .over(let result):
        task.finish()
        callbacks.complete(result)
      case .underWay(let load):
        core.start(
          load, transform, task,
          .init(
            event: { callbacks.report($0) }, end: { callbacks.complete($0) }, endsWithStale: true))
      }
    } catch {
      task.finish()
      callbacks.complete(.failure(error))
    }
    return task
  }

  /// What the loads take of the memory budget now.
  public var memoryUse: MemoryUse { core.budget.use }

  // MARK: Ending

  /// Takes no more loads, stops revalidations that nobody waits for, and returns when every load under way has ended.
  ///
  /// Bodies of ``respond(to:body:options:)`` that are still being read are their readers': they go on, and what is whole is stored.
  ///
  /// The stores and the downloader stay open: they belong to who made them.
  public func close() async { await core.close() }
}
