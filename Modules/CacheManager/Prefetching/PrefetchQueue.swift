internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The queue of a prefetcher. The running loads retain it, so that they end properly after the prefetcher is released.
final class PrefetchQueue: Sendable {
  private struct State {
    var accounting: PrefetchAccounting
    var isPaused = false
    var isPumping = false
    var watchers: [Int: AsyncStream<PrefetchProgress>.Continuation] = [:]
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    var nextWatcher = 0
  }

  private let core: LoadCoordinator
  private let destination: PrefetchDestination
  private let concurrency: Int
  private let validity: Result<Void, CacheError>
  /// Whether the items are bytes and not values.
  private let isOfBytes: Bool
  /// Loads one item. The closure is called at its end.
  private let load:
    @Sendable (ResolvedRequest, LoadTask, @escaping @Sendable (Result<Resource<Void>, CacheError>) -> Void) -> Void
  private let state: Lock<State>

  init<Value: Sendable>(
    _ core: LoadCoordinator, _ transform: ResourceTransform<Value>,
    _ destination: PrefetchDestination, concurrency: Int
  ) {
    self.core = core
    self.destination = destination
    self.concurrency = max(1, concurrency)
    validity = Result { () throws(CacheError) in try CacheError.require("concurrency", concurrency, in: 1...) }
    state = Lock(State(accounting: PrefetchAccounting(remembersStored: destination == .disk)))
    isOfBytes = Value.self == Data.self && transform.id.isEmpty
    if destination == .disk, isOfBytes {
      // The bytes stream into the store and are not collected in memory.
      load = { load, task, end in
        core.start(load, core.storeForm { _ in }, task, end: end)
      }
    } else {
      load = { load, task, end in
        let end = destination == .disk ? Self.checkingDisk(load, core, end) : end
        guard destination != .disk || load.writes.contains(.disk) else { return end(.failure(load.noDurableStore)) }
        switch core.begin(load, transform) {
        case .over(let result): end(result.map { $0.with(()) })
        case .underWay(let load, let known):
          core.start(load, known: known, transform, task) { end($0.map { $0.with(()) }) }
        }
      }
    }
  }

  /// Returns a closure that ends a load of a value with an error if neither the value nor its original was stored.
  private static func checkingDisk(
    _ load: ResolvedRequest, _ core: LoadCoordinator,
    _ end: @escaping @Sendable (Result<Resource<Void>, CacheError>) -> Void
  ) -> @Sendable (Result<Resource<Void>, CacheError>) -> Void {
    { result in
      guard case .success(let resource) = result, let store = load.store else { return end(result) }
      let keys = [resource.key, resource.key.with(transform: "")]
      let cache = TieredCache(load, resource: resource.key.resource)
      Task.detached(priority: .utility) {
        if await cache.contains(keys, in: store) != true {
          // A slow store may still be writing the response.
          await core.environment.stores.writes.idle()
          guard await cache.contains(keys, in: store) == true else {
            return end(.failure(CacheError(.notCached, reason: "the response was not stored", url: load.address)))
          }
        }
        end(result)
      }
    }
  }

  // MARK: Adding requests

  func append(_ requests: [ResourceRequest]) {
    state.withLock { $0.accounting.expect(requests.count) }
    let prepared = requests.map(prepare)
    // The items are entered together. Otherwise the first could end, and its check begin, before the second is entered.
    let duplicates = change { state in
      prepared.compactMap { prepared -> (PrefetchAccounting.Item, former: PrefetchAccounting.Item)? in
        switch prepared.item {
        case .failure(let error): state.accounting.refuse(prepared.url, error, as: prepared.number)
        case .success(let item):
          if case .duplicate(let former) = state.accounting.enter(item, as: prepared.number) { return (item, former) }
        }
        return nil
      }
    }
    for (item, former) in duplicates {
      core.queuedPriorities.remove(item.task.priority, for: item.key)
      former.task.priority.raise(to: item.task.priority.level)
    }
    pump()
  }

  /// Makes the item of a request, or the error of a request that cannot be made, and its number.
  private func prepare(
    _ request: ResourceRequest
  ) -> (number: PrefetchAccounting.Number, url: URL, item: Result<PrefetchAccounting.Item, CacheError>) {
    let number = state.withLock { $0.accounting.nextNumber() }
    var request = request
    let level = min(request.options.priority, .low)
    request.options.priority = level
    if destination == .memory { request.options.writes.formIntersection(.memory) }
    if destination == .disk, !isOfBytes {
      // A value that is only in memory must still be stored on disk, so memory is not read.
      request.options.reads.formIntersection(.disk)
      request.options.writes.formIntersection(.disk)
    }
    let load: ResolvedRequest
    do throws(CacheError) {
      try validity.get()
      load = try ResolvedRequest(request, core)
    } catch {
      return (number, request.url, .failure(error))
    }
    var item = PrefetchAccounting.Item(
      load: load, key: load.resourceKey, task: LoadTask(id: load.id, priority: LoadPriority(level)))
    // The priority and the observer are registered before another thread can start the item. The start removes the priority.
    core.queuedPriorities.add(item.task.priority, for: item.key)
    item.observation = item.task.priority.onRaise { [weak self] level in
      self?.state.withLock { $0.accounting.raise(number, to: level) }
    }
    return (number, request.url, .success(item))
  }

  var isPaused: Bool {
    get { state.withLock { $0.isPaused } }
    set {
      state.withLock { $0.isPaused = newValue }
      pump()
    }
  }

  // MARK: Running loads

  /// Starts the items that may start. Only one thread at a time does this. A concurrent call, or a call from a load that ends at
  /// once, leaves its work to that thread.
  private func pump() {
    let begins = state.withLock { state in
      defer { state.isPumping = true }
      return !state.isPumping
    }
    guard begins else { return }
    while let (number, item) = next() { start(number, item) }
  }

  private func next() -> (number: PrefetchAccounting.Number, item: PrefetchAccounting.Item)? {
    change { state in
      guard !state.isPaused, state.accounting.progress.running < concurrency, let next = state.accounting.begin() else {
        state.isPumping = false
        return nil
      }
      return next
    }
  }

  private func start(_ number: PrefetchAccounting.Number, _ item: PrefetchAccounting.Item) {
    core.queuedPriorities.remove(item.task.priority, for: item.key)
    load(item.load, item.task) { self.ended(number, $0) }
  }

  private func ended(_ number: PrefetchAccounting.Number, _ result: Result<Resource<Void>, CacheError>) {
    change { $0.accounting.end(number, result) }
    pump()
  }

  // MARK: Checking the store

  /// Looks for the responses that were stored, and then ends the prefetch. Later ones may have evicted them.
  private func check(_ stored: [PrefetchAccounting.StoredItem], _ load: ResolvedRequest) {
    Task.detached(priority: .utility) { [self] in
      var missing = await missing(stored, load)
      if !missing.isEmpty {
        // A slow store may still be writing some of them.
        await core.environment.stores.writes.idle()
        missing = await self.missing(missing, load)
      }
      let numbers = Set(missing.map(\.number))
      change { $0.accounting.endCheck(of: stored, missing: numbers) }
      pump()
    }
  }

  /// Returns the items that are no longer in their stores. If a store fails, the rest of its items count as stored.
  private func missing(
    _ stored: [PrefetchAccounting.StoredItem], _ load: ResolvedRequest
  ) async -> [PrefetchAccounting.StoredItem] {
    var missing: [PrefetchAccounting.StoredItem] = []
    var (stores, failed): (Set<ComponentID>, Set<ComponentID>) = ([], [])
    for item in stored where !failed.contains(item.store.id) {
      let store = item.store
      let cache = TieredCache(load, resource: item.key.resource)
      if stores.insert(store.id).inserted {
        // A store that evicts in the background has done so when it counts its entries.
        _ = try? await cache.read { () throws(CacheError) in try await store.usage() }
      }
      switch await cache.contains([item.key, item.key.with(transform: "")], in: store) {
      case nil: failed.insert(store.id)
      case false?: missing.append(item)
      case true?: break
      }
    }
    return missing
  }

  // MARK: Cancelling

  func cancel(_ isMeant: (URL) -> Bool) {
    cancelWaiting(isMeant)
    for item in state.withLock({ $0.accounting.running(isMeant) }) { item.task.cancel() }
  }

  func cancelWaiting(_ isMeant: (URL) -> Bool = { _ in true }) {
    for item in change({ $0.accounting.cancelWaiting(isMeant) }) {
      core.queuedPriorities.remove(item.task.priority, for: item.key)
    }
  }

  // MARK: Reporting

  var progress: PrefetchProgress { state.withLock { $0.accounting.progress } }

  /// Changes the state and reports new progress to the watchers. When no work is left, finishes the watchers and resumes the
  /// waiters.
  @discardableResult
  private func change<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, check, waiters) = state.withLock { state in
      let before = state.accounting.progress
      let result = body(&state)
      let check = state.accounting.beginCheck()
      let progress = state.accounting.progress
      guard progress != before else { return (result, check, [CheckedContinuation<Void, Never>]()) }
      // The progress is sent under the lock, so that each watcher receives it in order. `yield` resumes a task and runs no
      // caller's code.
      for watcher in state.watchers.values { watcher.yield(progress) }
      guard progress.isFinished else { return (result, check, []) }
      for watcher in state.watchers.values { watcher.finish() }
      defer { (state.watchers, state.waiters) = ([:], [:]) }
      return (result, check, Array(state.waiters.values))
    }
    for waiter in waiters { waiter.resume() }
    if let check { self.check(check.items, check.load) }
    return result
  }

  func updates() -> AsyncStream<PrefetchProgress> {
    let (stream, continuation) = AsyncStream.makeStream(of: PrefetchProgress.self, bufferingPolicy: .bufferingNewest(1))
    let id = state.withLock { state -> Int? in
      continuation.yield(state.accounting.progress)
      guard !state.accounting.progress.isFinished else { return nil }
      state.nextWatcher += 1
      state.watchers[state.nextWatcher] = continuation
      return state.nextWatcher
    }
    guard let id else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] reason in
      // A finished stream needs no removal. `change` removes it under the lock.
      guard case .cancelled = reason else { return }
      _ = self?.state.withLock { $0.watchers.removeValue(forKey: id) }
    }
    return stream
  }

  /// Returns the report when no work is left, or when the calling task is cancelled.
  func report() async -> PrefetchReport {
    let id = state.withLock { state in
      state.nextWatcher += 1
      return state.nextWatcher
    }
    await withTaskCancellationHandler {
      await finished(id) { Task.isCancelled }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
    return state.withLock { $0.accounting.report }
  }

  /// Returns the report when no work is left, even if the calling task is cancelled. The report then includes the items that were
  /// not loaded.
  func wholeReport() async -> PrefetchReport {
    await finished(0) { false }
    return state.withLock { $0.accounting.report }
  }

  private func finished(_ id: Int, or isCancelled: @Sendable () -> Bool) async {
    await withCheckedContinuation { continuation in
      let isReady = state.withLock { state in
        // Checked under the lock that the cancellation handler takes to resume the waiter, so no cancellation is missed.
        if isCancelled() || state.accounting.progress.isFinished { return true }
        state.waiters[id] = continuation
        return false
      }
      if isReady { continuation.resume() }
    }
  }
}

extension TieredCache {
  /// Whether the durable store has an entry with one of the keys, or `nil` if it fails.
  fileprivate func contains(_ keys: [CacheKey], in store: any CacheStore) async -> Bool? {
    for (number, key) in keys.enumerated() where number == 0 || key != keys[number - 1] {
      do throws(CacheError) {
        let entry = try await read { () throws(CacheError) in try await store.entry(for: key, range: 0..<0) }
        if entry != nil { return true }
      } catch {
        return nil
      }
    }
    return false
  }
}
