internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Makes a transform's value of fetched bytes, or of what is stored of it, and keeps it under its own key: in memory, and encoded
/// in the durable store.
struct ValuePipeline<Value: Sendable>: Sendable {
  let load: ResolvedRequest
  let transform: ResourceTransform<Value>
  let core: LoadCoordinator
  let priority: LoadPriority
  /// As the stores were when the load began.
  private let cache: TieredCache

  init(load: ResolvedRequest, transform: ResourceTransform<Value>, core: LoadCoordinator, priority: LoadPriority) {
    self.load = load
    self.transform = transform
    self.core = core
    self.priority = priority
    cache = TieredCache(load, resource: load.settings.resource)
    if transform.coding != nil { load.invalidations.noteTransforms() }
  }

  /// What to ask for: what is stored of the transform is enough, and then the bytes in any case. A transform that is never stored
  /// asks for the bytes at once.
  var demands: [RequestedRepresentation?] {
    guard transform.coding != nil else { return [nil] }
    let keepsOriginal = load.settings.storagePolicy != .variants
    return [
      RequestedRepresentation(transform: transform.id, keepsOriginal: keepsOriginal),
      RequestedRepresentation(transform: nil, keepsOriginal: keepsOriginal),
    ]
  }

  /// - Returns: nil where the bytes were left in the store, and no value is stored there.
  func value(of fetched: LoadOutcome) async throws(CacheError) -> TransformedOutcome<Value>? {
    let key = fetched.key.with(transform: transform.id)
    func derived(_ value: Value, _ origin: ValueOrigin) -> TransformedOutcome<Value> {
      load.observe(.transformed(key: key, origin: origin))
      return TransformedOutcome(
        value: value,
        fetched: fetched.with {
          $0.key = key
          $0.valueOrigin = origin
        })
    }
    if load.reads.contains(.memory) || fetched.source == .revalidated,
      let kept = load.memory.map(MemoryTier.init)?.value(of: key, for: fetched.metadata, as: Value.self)
    {
      return derived(kept, .memory)
    }
    if let stored = try await stored(key, fetched) {
      keepInMemory(stored, key, fetched)
      return derived(stored, .disk)
    }
    guard !fetched.isBodyLeft else { return nil }
    let made = try await made(of: fetched, upTo: transform.changes.count)
    keepInMemory(made.value, key, fetched)
    await keepOnDisk(made, key, fetched)
    return derived(made.value, .transformed)
  }

  // MARK: Stored

  /// The value of what is stored. What makes no value is removed, and made anew.
  private func stored(_ key: CacheKey, _ fetched: LoadOutcome) async throws(CacheError) -> Value? {
    guard let coding = transform.coding, let store = load.store,
      fetched.source == .revalidated || load.reads.contains(.disk) && !fetched.isNew
    else { return nil }
    let cache = cache.forResource(key.resource)
    var encoded = fetched.encoded[transform.id]
    if encoded == nil { encoded = try await cache.readTransform(key, of: fetched.metadata, in: store) }
    guard let data = encoded else { return nil }
    do throws(CacheError) {
      return try await work { () throws(CacheError) in try coding.decode(data, fetched.metadata) }
    } catch {
      if error.isCancellation { throw error }
      load.observe(.readFailed(resource: key.resource, error: error))
      await cache.removeTransform(key, fetched.metadata.revision)
      return nil
    }
  }

  private func keepOnDisk(_ made: ReservedValue<Value>, _ key: CacheKey, _ fetched: LoadOutcome) async {
    guard let coding = transform.coding, isKept, load.writes.contains(.disk), fetched.isShareable, fetched.isStored,
      let store = load.store, !Task.isCancelled
    else { return }
    guard coding.canEncode(made.value) else { return await keepOriginal(fetched, in: store) }
    do throws(CacheError) {
      let data = try await work(isContinuing: true) { () throws(CacheError) in
        try withExtendedLifetime(made) { () throws(CacheError) in try coding.encode(made.value, fetched.metadata) }
      }
      if load.settings.storagePolicy == .automatic, data.count >= fetched.data.count { return }
      let (cache, candidate) = (cache.forResource(key.resource), Candidate(key: key, metadata: fetched.metadata))
      _ = await load.writeDeadline.wait(load) { await cache.storeTransform(data, candidate, in: store) }
    } catch {
      if error.isCancellation { return }
      load.observe(.storeFailed(key: key, error: error))
      await keepOriginal(fetched, in: store)
    }
  }

  /// What can't be kept as a variant is made of its original again, which every other policy has stored.
  private func keepOriginal(_ fetched: LoadOutcome, in store: any CacheStore) async {
    guard load.settings.storagePolicy == .variants else { return }
    let (cache, candidate) = (cache.forResource(fetched.key.resource), Candidate(key: fetched.key, metadata: fetched.metadata))
    _ = await load.writeDeadline.wait(load) {
      await cache.storeOriginal(fetched.data, insteadOfTransformOf: candidate, in: store)
    }
  }

  private var isKept: Bool {
    switch load.settings.storagePolicy {
    case .originals: false
    case .variants, .all, .automatic: true
    }
  }

  /// Only what belongs to a stored answer is kept: without its metadata a value could never be found again.
  private func keepInMemory(_ value: Value, _ key: CacheKey, _ fetched: LoadOutcome) {
    guard load.writes.contains(.memory), fetched.isShareable, let tier = load.memory.map(MemoryTier.init),
      let index = tier.index(of: key.resource),
      index.elements.contains(where: { $0.metadata.revision == fetched.metadata.revision })
    else { return }
    tier.insert(value, cost: transform.cost(value), of: key, for: fetched.metadata)
  }

  // MARK: Made

  /// What the transform's steps make of the bytes, up to one of them. Each is carried out once for all transforms that begin
  /// alike.
  private func made(of fetched: LoadOutcome, upTo count: Int) async throws(CacheError) -> ReservedValue<Value> {
    // Its own first step, or another load's that this one joins, may wait for further loads: they are not to wait for what this
    // one has.
    if !transform.isFirstBounded { fetched.reservation?.release() }
    let stem = transform.stem(count)
    if count < transform.changes.count, load.reads.contains(.memory),
      let kept = load.memory.map(MemoryTier.init)?
        .value(of: fetched.key.with(transform: stem), for: fetched.metadata, as: Value.self)
    {
      return ReservedValue(value: kept, share: nil)
    }
    let id = StepCoalescer.ID(Value.self, of: fetched.metadata.revision, stem: stem, on: load.executor)
    return try await core.steps.outcome(of: id, priority) {
      load.observe(.joined(url: load.address))
    } _: { () throws(CacheError) in
      guard count > 0 else { return try await decoded(fetched) }
      let before = try await made(of: fetched, upTo: count - 1)
      let change = transform.changes[count - 1]
      // It is thought to make as much as it is made of.
      return try await counted(transform.cost(before.value), isContinuing: true) { @concurrent () throws(CacheError) in
        try withExtendedLifetime(before) { () throws(CacheError) in try change.apply(before.value, fetched.metadata) }
      }
    }
  }

  private func decoded(_ fetched: LoadOutcome) async throws(CacheError) -> ReservedValue<Value> {
    let (transform, data, body, metadata) = (transform, fetched.data, ResourceBody(fetched.data), fetched.metadata)
    let first: @Sendable () async throws(CacheError) -> Value = { () throws(CacheError) in
      try await transform.first(body, metadata)
    }
    guard transform.isFirstBounded else { return core.budget.counted(try await placed(first), transform.cost) }
    return try await counted(transform.firstMemory(data, metadata), first)
  }

  /// Work that makes a value and takes so many bytes, as soon as there is a place and room for it. What takes next to nothing
  /// waits for no room.
  private func counted(
    _ memory: @autoclosure @escaping @Sendable () -> Int, isContinuing: Bool = false,
    _ make: @escaping @Sendable @concurrent () async throws(CacheError) -> Value
  ) async throws(CacheError) -> ReservedValue<Value> {
    try await core.workSlots.work(priority, isContinuing: isContinuing) { () throws(CacheError) in
      try await placed { [budget = core.budget, cost = transform.cost, priority] () throws(CacheError) in
        let memory = memory()
        guard memory > 0 else { return budget.counted(try await make(), cost) }
        return try await budget.work(memory, priority, weight: cost, make)
      }
    }
  }

  /// Work that waits for nothing, in its place, as soon as there is one.
  private func work<Result: Sendable>(
    isContinuing: Bool = false, _ body: @escaping @Sendable () throws(CacheError) -> Result
  ) async throws(CacheError) -> Result {
    try await core.workSlots.work(priority, isContinuing: isContinuing) { () throws(CacheError) in
      try await placed { @concurrent () throws(CacheError) in try body() }
    }
  }

  /// On the load's executor, and on no actor.
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

extension LoadOutcome {
  /// Whether it has just come: nothing was made of it before.
  fileprivate var isNew: Bool { self.source == .network || self.source == .schemeHandler }
}
