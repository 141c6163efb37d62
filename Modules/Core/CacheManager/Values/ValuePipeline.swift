internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Makes the value of a transform from loaded bytes or from its stored encoding. Caches the value under its own key in memory
/// and, encoded, in the durable store.
struct ValuePipeline<Value: Sendable>: Sendable {
  let load: ResolvedRequest
  let transform: ResourceTransform<Value>
  let core: LoadCoordinator
  let priority: LoadPriority
  /// The view of the stores at the beginning of the load.
  private let cache: TieredCache

  init(load: ResolvedRequest, transform: ResourceTransform<Value>, core: LoadCoordinator, priority: LoadPriority) {
    self.load = load
    self.transform = transform
    self.core = core
    self.priority = priority
    cache = TieredCache(load, resource: load.settings.resource)
    if transform.coding != nil { load.invalidations.noteTransforms() }
  }

  /// The representations to request, in this order. For the first, a stored value of the transform is sufficient. The second
  /// always includes the bytes. A transform whose values are never stored requests the bytes at once.
  var demands: [RequestedRepresentation?] {
    let storesOriginal = load.settings.storagePolicy != .variants
    guard transform.coding != nil else {
      // Memory has the bytes of a file beside a value that is not stored, so that a 304 confirms the value.
      return [load.isLocalFile ? RequestedRepresentation(transform: nil, storesOriginal: true) : nil]
    }
    return [
      RequestedRepresentation(transform: transform.id, storesOriginal: storesOriginal),
      RequestedRepresentation(transform: nil, storesOriginal: storesOriginal),
    ]
  }

  /// - Returns: The value, or `nil` if the bytes were left in the durable store and no value is stored there.
  func value(of outcome: Exchange) async throws(CacheError) -> TransformedOutcome<Value>? {
    let key = outcome.key.with(transform: transform.id)
    let start = load.observationStart
    func derived(_ value: Value, _ origin: ValueOrigin) -> TransformedOutcome<Value> {
      load.observe(.transformed(key: key, origin: origin, duration: load.clock.uptime - start))
      return TransformedOutcome(
        value: value,
        outcome: outcome.with {
          $0.key = key
          $0.valueOrigin = origin
        })
    }
    if load.reads.contains(.memory) || outcome.source == .revalidated,
      let kept = load.memory.map(MemoryTier.init)?.value(of: key, for: outcome.metadata, as: Value.self)
    {
      return derived(kept, .memory)
    }
    if let stored = try await stored(key, outcome) {
      cacheInMemory(stored, key, outcome)
      return derived(stored, .disk)
    }
    guard !outcome.isBodyLeft else { return nil }
    let made = try await made(of: outcome, upTo: transform.changes.count)
    cacheInMemory(made.value, key, outcome)
    let result = derived(made.value, .transformed)
    await cacheOnDisk(made, key, outcome)
    return result
  }

  // MARK: Stored values

  /// Returns the decoded stored value, or `nil` if there is none or it cannot be decoded. A damaged value is removed.
  private func stored(_ key: CacheKey, _ outcome: Exchange) async throws(CacheError) -> Value? {
    guard let coding = transform.coding, let store = load.store,
      outcome.source == .revalidated || load.reads.contains(.disk) && !outcome.isNew
    else { return nil }
    let cache = cache.forResource(key.resource)
    var encoded = outcome.encoded[transform.id]
    if encoded == nil { encoded = try await cache.readTransform(key, of: outcome.metadata, in: store) }
    guard let data = encoded else { return nil }
    do throws(CacheError) {
      return try await work { () throws(CacheError) in try coding.decode(data, outcome.metadata) }
    } catch {
      if error.isCancellation { throw error }
      load.observe(.readFailed(resource: key.resource, error: error))
      // Another error may not last: the memory for a large value may be missing now.
      if error.code == .decodingFailed { await cache.removeTransform(key, outcome.metadata.revision) }
      return nil
    }
  }

  private func cacheOnDisk(_ made: ReservedValue<Value>, _ key: CacheKey, _ outcome: Exchange) async {
    guard let coding = transform.coding, isCacheable, load.writes.contains(.disk), outcome.isShareable, outcome.isStored,
      let store = load.store, !Task.isCancelled
    else { return }
    guard coding.canEncode(made.value) else { return await cacheOriginal(outcome, in: store) }
    do throws(CacheError) {
      let data = try await work(isContinuing: true) { () throws(CacheError) in
        try withExtendedLifetime(made) { () throws(CacheError) in try coding.encode(made.value, outcome.metadata) }
      }
      if load.settings.storagePolicy == .automatic, data.count >= outcome.data.count { return }
      let (cache, candidate) = (cache.forResource(key.resource), Candidate(key: key, metadata: outcome.metadata))
      _ = await cache.change(key) { await cache.storeTransform(data, candidate, in: store) }
    } catch {
      if error.isCancellation { return }
      load.observe(.storeFailed(key: key, error: error))
      await cacheOriginal(outcome, in: store)
    }
  }

  /// Stores the original of a value that cannot be stored, so that the value can be made from it again. With every other policy,
  /// the original is already stored.
  private func cacheOriginal(_ outcome: Exchange, in store: any CacheStore) async {
    guard load.settings.storagePolicy == .variants, !load.isLocalFile else { return }
    let (cache, candidate) = (cache.forResource(outcome.key.resource), Candidate(key: outcome.key, metadata: outcome.metadata))
    _ = await cache.change(candidate.key) {
      await cache.storeOriginal(outcome.data, insteadOfTransformOf: candidate, in: store)
    }
  }

  private var isCacheable: Bool {
    switch load.settings.storagePolicy {
    case .originals: false
    case .variants, .all, .automatic: true
    }
  }

  /// Caches a value in memory if memory has the metadata of its response. Without that metadata, no lookup could find the value.
  private func cacheInMemory(_ value: Value, _ key: CacheKey, _ outcome: Exchange) {
    guard load.writes.contains(.memory), outcome.isShareable, let tier = load.memory.map(MemoryTier.init),
      let record = tier.index(of: key.resource)?.records.first(where: { $0.metadata.revision == outcome.metadata.revision })
    else { return }
    tier.insert(value, cost: transform.cost(value), of: key, in: record, load.clock)
  }

  // MARK: Making values

  /// Returns the value that the first step and the first `count` changes make from the bytes. Transforms that begin with the same
  /// steps run each of these steps once.
  private func made(of outcome: Exchange, upTo count: Int) async throws(CacheError) -> ReservedValue<Value> {
    // An unbounded first step may wait for further loads, in this load or in one that it joins. Those loads must not wait for
    // memory that this load holds.
    if !transform.isFirstBounded { outcome.reservation?.release() }
    let stem = transform.stem(count)
    if count < transform.changes.count, load.reads.contains(.memory),
      let kept = load.memory.map(MemoryTier.init)?
        .value(of: outcome.key.with(transform: stem), for: outcome.metadata, as: Value.self)
    {
      return ReservedValue(value: kept, reservation: nil)
    }
    let step = FlightKey.step(outcome.metadata.revision, .init(stem, of: Value.self, on: load.executor))
    return try await core.flights.output(of: step, for: load.id, priority) { leader in
      load.observe(.joined(url: load.observedURL, to: leader))
    } leading: { () throws(CacheError) in
      guard count > 0 else { return try await decoded(outcome) }
      let before = try await made(of: outcome, upTo: count - 1)
      let change = transform.changes[count - 1]
      // The result is assumed to need as much memory as the value from which it is made.
      return try await counted(transform.cost(before.value), isContinuing: true) { @concurrent () throws(CacheError) in
        try withExtendedLifetime(before) { () throws(CacheError) in try change.apply(before.value, outcome.metadata) }
      }
    }
  }

  private func decoded(_ outcome: Exchange) async throws(CacheError) -> ReservedValue<Value> {
    let (transform, data, body, metadata) = (transform, outcome.data, ResourceBody(outcome.data), outcome.metadata)
    let first: @Sendable () async throws(CacheError) -> Value = { () throws(CacheError) in
      try await transform.first(body, metadata)
    }
    guard transform.isFirstBounded else { return core.environment.budget.counted(try await placed(first), transform.cost) }
    return try await counted(transform.firstMemory(data, metadata), first)
  }

  /// Runs work that makes a value, as soon as a slot is free and the budget has room for `memory` bytes. Work that needs no
  /// memory does not wait for the budget.
  private func counted(
    _ memory: @autoclosure @escaping @Sendable () -> Int, isContinuing: Bool = false,
    _ make: @escaping @Sendable @concurrent () async throws(CacheError) -> Value
  ) async throws(CacheError) -> ReservedValue<Value> {
    try await core.environment.budget.step(priority, isContinuing: isContinuing) { () throws(CacheError) in
      try await placed { [budget = core.environment.budget, cost = transform.cost, priority] () throws(CacheError) in
        let memory = memory()
        guard memory > 0 else { return budget.counted(try await make(), cost) }
        return try await budget.work(memory, priority, weight: cost, make)
      }
    }
  }

  /// Runs work that does not suspend, on the load's executor, as soon as a slot is free.
  private func work<Result: Sendable>(
    isContinuing: Bool = false, _ body: @escaping @Sendable () throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    try await core.environment.budget.step(priority, isContinuing: isContinuing) { () throws(CacheError) in
      try await placed { @concurrent () throws(CacheError) in try body() }
    }
  }

  /// Runs `body` on the load's executor and on no actor.
  private func placed<Result: Sendable>(
    _ body: @escaping @Sendable @concurrent () async throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    let outcome: Swift.Result<Result, CacheError> = await withTaskExecutorPreference(load.executor) {
      do throws(CacheError) {
        return .success(try await body())
      } catch {
        return .failure(error)
      }
    }
    return try outcome.get()
  }
}

extension Exchange {
  /// Whether the response has just arrived, so that no value was made from it before.
  fileprivate var isNew: Bool { self.source == .network || self.source == .schemeHandler }
}

/// The representations that the waiters of one flight want. A waiter that joins adds its own, which affects every
/// decision that the load has not made yet.
///
/// A flight without a requested representation loads the bytes and stores the original.
final class RequestedRepresentation: Sendable {
  private struct Wants: Sendable {
    /// Whether a waiter wants the body itself.
    var bytes: Bool
    /// Whether a waiter wants the original in the durable store.
    var original: Bool
    /// The transforms that waiters want. A waiter needs no body if its transform's value is stored.
    var transforms: Set<String> = []
  }

  private let wants: Lock<Wants>

  /// - Parameters:
  ///   - transform: The transform whose stored value is sufficient, or `nil` if the bytes are required.
  ///   - storesOriginal: Whether the original is to be stored.
  init(transform: String?, storesOriginal: Bool) {
    wants = Lock(Wants(bytes: transform == nil, original: storesOriginal, transforms: transform.map { [$0] } ?? []))
  }

  /// Creates the representation for the value of a transform. A stored value is sufficient if the transform can store values.
  /// Otherwise the bytes are required.
  convenience init<Value>(for transform: ResourceTransform<Value>) {
    self.init(transform: transform.coding == nil ? nil : transform.id, storesOriginal: true)
  }

  /// Adds the representation that another waiter wants, or `nil` for the bytes and a stored original.
  func add(_ other: RequestedRepresentation?) {
    let more = other.map { $0.wants.withLock { $0 } } ?? Wants(bytes: true, original: true)
    wants.withLock { wants in
      wants.bytes = wants.bytes || more.bytes
      wants.original = wants.original || more.original
      wants.transforms.formUnion(more.transforms)
    }
  }

  var wantsBytes: Bool { wants.withLock { $0.bytes } }

  var storesOriginal: Bool { wants.withLock { $0.original } }

  /// The transforms whose stored values are sufficient.
  var transforms: Set<String> { wants.withLock { $0.transforms } }

  /// Whether the stored values of these transforms are sufficient for every waiter.
  func isSatisfied(by transforms: [String: Int64?]) -> Bool {
    wants.withLock { wants in !wants.bytes && wants.transforms.allSatisfy { transforms[$0] != nil } }
  }
}

/// A value between two steps, with its reservation in the memory budget. The reservation lasts while any task holds the value.
struct ReservedValue<Value: Sendable>: Shareable {
  let value: Value
  /// The reservation, or `nil` if the value belongs to the memory store.
  let reservation: MemoryReservation?

  var isShareable: Bool { true }
}
