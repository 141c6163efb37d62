public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The layer in which a lookup found a resource.
public enum CacheLookup: Hashable, Sendable {
  /// The resource is in no layer. This is not an error.
  case miss
  /// The resource is in memory. `isFresh` states whether a load would use it without revalidation.
  case memory(isFresh: Bool)
  /// The resource is on disk, and not in memory.
  case disk(isFresh: Bool)
}

extension ResourceManager {
  /// Returns the value of a URL if it is in memory and may be used now. Does not suspend and sends no request.
  ///
  /// ```swift
  /// if let resource = manager.cachedInMemory(url, as: greeting) { show(resource.value) }
  /// ```
  ///
  /// With the policy `staleWhileRevalidate`, the value may be stale (``Resource/isStale``). Load it to revalidate it.
  public func cachedInMemory<Value: Sendable>(
    _ url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) -> Resource<Value>? {
    cachedInMemory(ResourceRequest(url, options: options), as: transform)
  }

  /// Returns the bytes of a URL if they are in memory and may be used now. Does not suspend and sends no request.
  public func cachedInMemory(_ url: URL, options: RequestOptions = RequestOptions()) -> Resource<Data>? {
    if let hit: Resource<Data> = core.hit(url, options, "", isLoad: false) { return hit }
    return core.cached(ResourceRequest(url, options: options), .bytes)
  }

  /// Returns the value of a request if it is in memory and may be used now. Does not suspend and sends no request.
  #if compiler(>=6.3)
  @specialized(where Value == Data)
  #endif
  public func cachedInMemory<Value: Sendable>(
    _ request: ResourceRequest, as transform: ResourceTransform<Value>
  ) -> Resource<Value>? {
    core.hit(request, transform, isLoad: false) ?? core.cached(request, transform)
  }

  /// Returns the value of a URL if it is in memory or in the durable store: see ``cached(_:as:)``.
  public func cached<Value: Sendable>(
    _ url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) async -> Resource<Value>? {
    await cached(ResourceRequest(url, options: options), as: transform)
  }

  /// Returns the bytes of a URL if they are in memory or in the durable store: see ``cached(_:as:)``.
  public func cached(_ url: URL, options: RequestOptions = RequestOptions()) async -> Resource<Data>? {
    await cached(ResourceRequest(url, options: options), as: .bytes)
  }

  /// Returns the value of a request if it is in memory or in the durable store, fresh or stale. Sends no request, whatever the
  /// policy of the options is.
  ///
  /// ```swift
  /// if let resource = await manager.cached(url, as: greeting) { print(resource.value, resource.source) }
  /// ```
  ///
  /// ``Resource/source`` is `memory` or `disk`, and ``Resource/isStale`` states whether the freshness lifetime of the response
  /// has passed. A value that is not stored is made from its stored original. What is read or made is put into memory, if the
  /// `writes` of the options permit it. The durable store is not written.
  ///
  /// A fresh value in memory is a `CacheEvent.hit`, and every other value is a load with all of its events. A miss has no events
  /// of a load. A store that fails is reported (`CacheEvent.readFailed`).
  ///
  /// If the calling task is cancelled or the manager is closed, only memory is read.
  ///
  /// - Returns: `nil` if no such response is stored, or if it cannot be used: the store fails or is too slow, the entry is
  ///   damaged, the transform fails, or the `timeout` of the options has passed. Also `nil` for an invalid request, and for one
  ///   that the cache never satisfies: with a body, a method other than GET, a condition or a range.
  public func cached<Value: Sendable>(
    _ request: ResourceRequest, as transform: ResourceTransform<Value>
  ) async -> Resource<Value>? {
    if let hit = core.hit(request, transform, isLoad: false) { return hit }
    var request = request
    request.options.policy = .cacheOnly
    request.options.writes.formIntersection(.memory)
    guard let load = try? ResolvedRequest(request, core) else { return nil }
    return await core.stored(load, transform)
  }

  /// Returns the layer that contains the original of a resource, or `.miss`. Sends no request.
  ///
  /// ```swift
  /// if try await manager.lookup(url) == .miss { showPlaceholder() }
  /// ```
  ///
  /// - Throws: `CacheError.Code.invalidURL`. A store that cannot be read counts as empty.
  public func lookup(_ request: ResourceRequest) async throws(CacheError) -> CacheLookup {
    var request = request
    request.options.policy = .cacheOnly
    let load = try ResolvedRequest(request, core)
    let cache = TieredCache(load, resource: load.settings.resource)
    return try await lookup(cache, load)
  }

  /// Returns the layer that contains the original of a URL, or `.miss`. Sends no request.
  public func lookup(_ url: URL, options: RequestOptions = RequestOptions()) async throws(CacheError) -> CacheLookup {
    try await lookup(ResourceRequest(url, options: options))
  }

  /// Returns the layer that contains the value of a URL's transform: see ``lookup(_:as:)``.
  public func lookup<Value: Sendable>(
    _ url: URL, as transform: ResourceTransform<Value>, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> CacheLookup {
    try await lookup(ResourceRequest(url, options: options), as: transform)
  }

  /// Returns the layer that contains the value or the original from which it can be made, or `.miss`. Sends no request.
  ///
  /// - Throws: `CacheError.Code.invalidURL`. A store that cannot be read counts as empty.
  public func lookup<Value: Sendable>(
    _ request: ResourceRequest, as transform: ResourceTransform<Value>
  ) async throws(CacheError) -> CacheLookup {
    guard !transform.id.isEmpty else { return try await lookup(request) }
    var request = request
    request.options.policy = .cacheOnly
    let load = try ResolvedRequest(request, core).with {
      $0.representation = RequestedRepresentation(for: transform)
    }
    let cache = TieredCache(load, resource: load.settings.resource)
    if let hit = cache.hit(load.head), cache.value(of: hit, transform: transform.id, as: Value.self) != nil {
      return .memory(isFresh: hit.metadata.freshness.isFresh(at: load.clock.now))
    }
    return try await lookup(cache, load)
  }

  private func lookup(_ cache: TieredCache, _ load: ResolvedRequest) async throws(CacheError) -> CacheLookup {
    let found = try await cache.lookUp(load.head)
    guard case .use(let index, _) = found.plan else { return .miss }
    let isFresh = found.candidates[index].metadata.freshness.isFresh(at: load.clock.now)
    return cache.isInMemory(found.candidates[index]) ? .memory(isFresh: isFresh) : .disk(isFresh: isFresh)
  }

  /// Whether the original of a resource is stored in one of `layers`, in any variant, fresh or stale.
  public func contains(
    _ url: URL, in layers: CacheLayers = .all, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) -> Bool {
    var options = options
    options.policy = .cacheOnly
    options.reads.formIntersection(layers)
    let load = try ResolvedRequest(ResourceRequest(url, options: options), core)
    let cache = TieredCache(load, resource: load.settings.resource)
    return try await !cache.lookUp(load.head).candidates.isEmpty
  }

  /// Removes every variant and transform of a resource. If it is removed from all layers, a response that was requested before
  /// the call still reaches its waiters, but it is not stored. The call then waits for responses of the resource that are being
  /// committed to the durable store.
  ///
  /// - Throws: The error of the durable store, with path and reason. The resource is removed from memory even then. The
  ///   durable store has removed the entries that it could list and remove.
  ///
  /// ```swift
  /// try await manager.remove(url)
  /// try await manager.clear(.memory)  // every resource, from memory alone
  /// ```
  public func remove(
    _ url: URL, from layers: CacheLayers = .all, options: RequestOptions = RequestOptions()
  ) async throws(CacheError) {
    let load = try ResolvedRequest(ResourceRequest(url, options: options), core)
    let resource = load.settings.resource
    if layers == .all { outdateLoads(of: resource) }
    try await TieredCache(load, resource: resource).removeAll(from: layers)
  }

  /// Empties the manager's stores. If all layers are cleared, a response that was requested before the call still reaches its
  /// waiters, but it is not stored. The call then waits for responses that are being committed to the durable store.
  public func clear(_ layers: CacheLayers = .all) async throws(CacheError) {
    if layers == .all {
      core.environment.invalidations.advance(with: .everything)
    } else {
      core.environment.invalidations.advance(afterRemovalOf: nil)
    }
    if layers.contains(.memory) { configuration.memory.map(MemoryTier.init)?.removeAll() }
    guard layers.contains(.disk), let store = configuration.store else { return }
    defer {
      // A load that began after the first advance may have put an entry into memory that was still on disk.
      core.environment.invalidations.advance(afterRemovalOf: nil)
      if layers.contains(.memory) { configuration.memory.map(MemoryTier.init)?.removeAll() }
    }
    try await store.removeAll()
    // The entries of commits that had begun are removed when they end.
    if layers == .all { await core.environment.commitOrder.waitForCommits(in: store.id) { _ in true } }
  }
}

extension ResourceManager {
  /// Returns the number and size of the entries in memory and on disk.
  ///
  /// ```swift
  /// let usage = try await manager.usage()
  /// print(usage.memory?.bytes ?? 0, usage.disk?.bytes ?? 0)
  /// ```
  ///
  /// The entries are the responses and the transformed values. The bytes in memory include the metadata of the responses, which
  /// the memory store has in separate entries. O(*n*) with the number of entries in memory.
  ///
  /// - Returns: The usage of each layer, or `nil` if the manager has no such store or the store does not count its entries.
  /// - Throws: The error of the durable store, with path and reason.
  public func usage() async throws(CacheError) -> (memory: StoreUsage?, disk: StoreUsage?) {
    var memory = configuration.memory?.usage()
    // A store that cannot list its keys counts the metadata, too.
    if let keys = try? configuration.memory?.keys() { memory?.entries = keys.count { !MemoryTier.isIndex($0) } }
    return (memory, try await configuration.store?.usage())
  }

  /// The part of the memory budget (``Configuration/memoryBudget``) that running loads use, in bytes, and the number of loads
  /// that wait for memory. The entries of the memory store are not included: see ``usage()``.
  ///
  /// - Returns: The budget, the memory in use, the highest use so far, and the number of waiting loads. The memory in use is that
  ///   of arriving bodies and of values that are being made.
  public var memoryUse: (limit: Int, inUse: Int, peak: Int, waiting: Int) { core.environment.budget.use }
}

extension ResourceManager {
  /// Returns the identity of a request, with the key that the manager gives it. It does not call the interceptor.
  package func identity(of request: ResourceRequest) -> RequestIdentity { core.environment.identity(of: request) }
}

extension ResourceManager {
  /// Stores bytes as the response of a URL, for example an image that the app has just uploaded.
  ///
  /// ```swift
  /// try await manager.store(avatar, for: url, headerFields: [.contentType: "image/png"])
  /// let shown = try await manager.load(url).data  // the avatar, without a request
  /// ```
  ///
  /// The bytes replace every stored variant of the URL. When they are stale, loads revalidate them. With an `ETag` field the
  /// origin can confirm them.
  ///
  /// A load that began before this call returned does not replace the bytes with its response. If the durable store is writing
  /// that response during the call, the URL may have no cached response afterwards.
  ///
  /// - Parameters:
  ///   - data: The body of the response.
  ///   - url: The URL, with any scheme.
  ///   - lifetime: The time for which loads use the bytes without revalidation, at least zero. With a validator, a
  ///     `Cache-Control` field takes precedence, and fractions of a second are dropped. Without a validator, fields have no
  ///     effect, and this is the time to live of the entry.
  ///   - headerFields: The fields of the response, such as `Content-Type` and `ETag`.
  ///   - options: The options that select the stored entry and the stores, such as `key`, `partition` and `writes`.
  /// - Throws: The error of the durable store, or `CacheError.Code.notCached` if the response was not stored, for example because
  ///   its fields forbid it. Earlier responses are removed first. If the store fails to remove them, the call throws, and they
  ///   may remain.
  public func store(
    _ data: Data, for url: URL, freshFor lifetime: Duration = .seconds(300), headerFields: HTTPFields = [:],
    options: RequestOptions = RequestOptions()
  ) async throws(CacheError) {
    try CacheError.require("freshFor", lifetime, in: .zero...)
    var fields = headerFields
    if fields[.cacheControl] == nil { fields[.cacheControl] = "max-age=\(lifetime.components.seconds)" }
    if fields[.date] == nil { fields[.date] = HTTPDate((options.clock ?? configuration.clock).now).description }
    var options = options
    options.downloader = .use(FixedResponse(HTTPResponse(status: .ok, headerFields: fields), data))
    options.alternatives = []
    // The bytes are the caller's, and not a server's that a hook would decrypt.
    options.hooks = nil
    options.policy = .reload
    if options.validator.resolved(configuration.validator) == nil, options.expiration == nil {
      options.expiration = .after(lifetime)
    }
    // The removal comes first, so that a response that was requested earlier is not stored, and no other variant can be selected.
    try await remove(url, options: options)
    let load = try ResolvedRequest(ResourceRequest(url, options: options), core).with { $0.isFromCaller = true }
    guard let store = load.store, options.writes.contains(.disk) else {
      _ = try await core.outcome(of: load, known: nil, .bytes).get()
      // A durable store may still be removing transforms for that load, which would then count as outdated itself.
      if load.store == nil { outdateLoads(of: load.settings.resource) }
      guard try await contains(url, in: options.writes, options: options) else {
        throw CacheError(.notCached, reason: "the response was not stored", url: url.address)
      }
      return
    }
    let revision = try await core.outcome(of: load, StoreForm(core: core) { $0.metadata.revision }).get().value
    outdateLoads(of: load.settings.resource)
    try await removeOthers(than: revision, of: load, from: store)
    // The response is copied from disk into memory. If that fails, the next load reads the disk.
    (options.policy, options.reads) = (.cacheOnly, .disk)
    if load.writes.contains(.memory) { _ = try? await self.load(url, options: options) }
  }

  /// Prevents running loads of the resource from storing their responses, and new loads from joining them.
  private func outdateLoads(of resource: String) { core.environment.invalidations.advance(removing: resource) }

  /// Removes the responses that other loads of the resource have stored in the meantime.
  ///
  /// - Throws: The error of the store, or `CacheError.Code.notCached` if such a response replaced the given revision.
  private func removeOthers(
    than revision: Revision, of load: ResolvedRequest, from store: any CacheStore
  ) async throws(CacheError) {
    load.memory.map(MemoryTier.init)?.remove(load.settings.resource)
    var isStored = false
    for variant in try await store.variants(of: load.settings.resource) {
      if variant.metadata.revision == revision {
        isStored = true
      } else {
        try await store.remove(variant.key, ifRevision: variant.metadata.revision)
      }
    }
    guard isStored else {
      throw CacheError(.notCached, reason: "another response replaced the stored one", url: load.address)
    }
  }
}

/// A downloader that returns the same response for every request.
private struct FixedResponse: Downloader {
  let id = ComponentID.unique(FixedResponse.self)
  private let head: HTTPResponse
  private let data: Data

  init(_ head: HTTPResponse, _ data: Data) { (self.head, self.data) = (head, data) }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    DownloadResponse(head: head, body: ResourceBody(data))
  }
}

extension ResourceManager {
  /// Removes stored responses, or marks them stale, in the manager's memory store and in its durable store.
  ///
  /// ```swift
  /// try await manager.purge(.url(url))                                // removed
  /// try await manager.purge(.prefix(news), .soft)                     // revalidated at their next use
  /// let count = try await manager.purge(.tag("product-7"), in: .all)  // in every partition
  /// ```
  ///
  /// After the call, no new load gets a purged response, and no running load brings one back. A response that was requested
  /// before the purge still reaches its waiters. It is not stored, or it is stored as a stale response. The call waits for
  /// responses that are being committed to the durable store.
  ///
  /// With a ``Configuration/fleet``, the purge reaches every process. After the call, each process revalidates a purged response
  /// before it uses it, with the exceptions in <doc:/Etagere/SeveralMachines>. The count is that of this process and of
  /// the shared store.
  ///
  /// A URL or a key in one partition costs one lookup. A tag uses the store's index by tag, if it has one. Every other
  /// selection lists and examines everything in the stores. On disk, this reads a part of every file.
  ///
  /// - Parameters:
  ///   - selection: The responses to purge.
  ///   - mode: Whether the responses are removed or marked stale.
  ///   - scope: The partitions to purge. `.partition(nil)` is the partition of loads that name none.
  /// - Returns: The number of purged responses. Each variant of a resource counts once, even if it is both in memory and
  ///   in the durable store.
  /// - Throws: `CacheError.Code.invalidURL`, `CacheError.Code.unsupported` if a store cannot list its entries, or the error of a
  ///   store, with path and reason. The purge continues with the other responses after an error. If one layer of a store cannot
  ///   list its entries, responses can remain in the others too. Repeat the purge after an error, also if the fleet cannot be
  ///   reached (`CacheError.Code.storeUnavailable`).
  @discardableResult
  public func purge(
    _ selection: PurgeSelection, _ mode: PurgeMode = .hard, in scope: PurgeScope = .partition(nil)
  ) async throws(CacheError) -> Int {
    let mode = configuration.validator == nil ? .hard : mode
    let purge = try Purge(selection, mode, in: scope) { kind throws(CacheError) in try resource(of: kind) }
    let purger = Purger(
      purge: purge, memory: configuration.memory.map(MemoryTier.init), store: configuration.store,
      clock: configuration.clock, invalidations: core.environment.invalidations, order: core.environment.commitOrder,
      commitsTo: configuration.store?.id)
    guard let member = core.environment.fleetMember else { return try await purger.run() }
    return try await member.run(purger)
  }

  /// Whether this process is known to have applied every purge of its ``Configuration/fleet`` that has returned.
  ///
  /// It is `true` without a fleet. It is `false` before the process has joined, after a time without contact, and after
  /// ``close()``. It is also `false` while a purge of another process takes too long here, or after it has failed here until it
  /// succeeds. A failed purge of this process only throws.
  ///
  /// While the value is `false`, loads do not use a stored response before the origin has confirmed it, with the exceptions in
  /// <doc:/Etagere/SeveralMachines>. Reading the value does not wait.
  public var isCurrentInFleet: Bool { core.environment.fleetMember?.isCurrent ?? true }

  /// Returns the resource under which the responses of a URL are stored. A prefix is not a request, so it has no key, and the
  /// interceptor does not receive it.
  private func resource(of kind: PurgeSelection.Kind) throws(CacheError) -> String {
    switch kind {
    case .url(let url): return try ResolvedRequest(ResourceRequest(url), core).settings.resource
    case .prefix(let url): return ResourceID.uri(of: try HTTPRequest(resource: url)) ?? url.absoluteString
    case .key, .tag, .everything: return ""
    }
  }
}

/// The stored responses that a purge affects.
public struct PurgeSelection: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    case url(URL)
    case key(String)
    case prefix(URL)
    case tag(String)
    case everything
  }

  let kind: Kind

  /// The responses that are stored under a URL, or under its key by ``ResourceManager/Configuration/cacheKey``, in every variant.
  public static func url(_ url: URL) -> PurgeSelection { PurgeSelection(kind: .url(url)) }

  /// The responses that are stored under a key (`RequestOptions.key`, ``ResourceManager/Configuration/cacheKey``), in every
  /// variant.
  public static func key(_ key: String) -> PurgeSelection { PurgeSelection(kind: .key(key)) }

  /// The responses that are stored under a URI with this prefix, and those from such a URI that are stored under a key.
  ///
  /// The bytes of the URIs in normal form are compared (see `ResourceID`). The prefix `…/news` also matches `…/newsletter`, and
  /// `…/news/` matches only the URIs below it. A URL without a path is the root of its host, so it matches no other host.
  public static func prefix(_ url: URL) -> PurgeSelection { PurgeSelection(kind: .prefix(url)) }

  /// The responses that their origin marked with this tag, in `Cache-Tag` or `Surrogate-Key`. Tags are compared byte by byte.
  public static func tag(_ name: String) -> PurgeSelection { PurgeSelection(kind: .tag(name)) }

  /// All stored responses.
  public static let everything = PurgeSelection(kind: .everything)
}

extension PurgeSelection: CustomStringConvertible {
  /// The selection in Swift notation, such as `tag("news")`.
  public var description: String { "\(kind)" }
}

/// The effect of a purge on the responses that it matches.
public enum PurgeMode: String, Hashable, Codable, Sendable, CaseIterable {
  /// Removes the responses.
  case hard
  /// Marks the responses stale. The next use revalidates them, and the origin may confirm them with a 304. Until then, they are
  /// served where stale responses are allowed: with `stale-while-revalidate` and `stale-if-error`, offline, and by policies that
  /// use any stored response.
  ///
  /// A manager without a validator cannot revalidate, so this mode is the same as ``hard``.
  case soft
}

/// The partitions that a purge affects.
public enum PurgeScope: Hashable, Codable, Sendable {
  /// The responses of this partition (`RequestOptions.partition`). `nil` means the responses without a partition.
  case partition(String?)
  /// The responses of all partitions.
  case all
}
