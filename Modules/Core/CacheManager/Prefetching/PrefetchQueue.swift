internal import CacheCore
internal import HTTPTypes
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The queue of a prefetcher: the items that wait or run, and the results of the others. The running loads retain it, so that
/// they end properly after the prefetcher is released.
final class PrefetchQueue: Sendable {
  /// The number of an item, in the order in which the items were added.
  private typealias Number = PriorityQueue.Ticket

  private struct Item: Sendable {
    let load: ResolvedRequest
    let key: CoalescingKey
    let task: LoadTask
    let identity: RequestIdentity
  }

  /// An item that ended with a stored response.
  private struct StoredItem: Sendable {
    let number: Number
    let url: URL
    let key: CacheKey
    let store: any CacheStore
    /// The number that counts the item.
    let count: any WritableKeyPath<PrefetchProgress, Int> & Sendable
  }

  private struct State {
    /// The items that wait and those that run.
    var items: [Number: Item] = [:]
    /// The GET requests among them.
    var numbers: [CoalescingKey: Number] = [:]
    var waiting = PriorityQueue()
    var last: Number = 0
    var isPaused = false
    var isPumping = false
    var progress = PrefetchProgress()
    var duplicates = 0
    /// The latest failures, and at most as many earlier ones.
    var failures: [(number: Number, url: URL, error: CacheError)] = []
    /// The number of failures that a report lists.
    var listed = PrefetchReport.listedFailures
    /// The items that ended since the last check of the store.
    var stored: [StoredItem] = []
    /// The load of the last of them, with whose observer and time limits the check reads the stores.
    var lastStored: ResolvedRequest?
    var watchers: [Int: AsyncStream<PrefetchProgress>.Continuation] = [:]
    var lastWatcher = 0

    mutating func take(_ number: Number) -> Item? {
      guard let item = items.removeValue(forKey: number) else { return nil }
      if numbers[item.key] == number { numbers[item.key] = nil }
      return item
    }

    mutating func fail(_ number: Number, _ url: URL, _ error: CacheError) {
      progress.failed += 1
      failures.append((number, url, error))
      if failures.count >= 2 * listed { failures.removeFirst(failures.count - listed) }
    }
  }

  private let core: LoadCoordinator
  private let destination: PrefetchDestination
  private let concurrency: Int
  /// Whether the items are bytes and not values.
  private let isOfBytes: Bool
  /// Loads one item. The closure is called at its end.
  private let load:
    @Sendable (ResolvedRequest, LoadTask, @escaping @Sendable (Result<Resource<Void>, CacheError>) -> Void) -> Void
  private let state = Lock(State())

  init<Value: Sendable>(
    _ core: LoadCoordinator, _ transform: ResourceTransform<Value>,
    _ destination: PrefetchDestination, concurrency: Int
  ) {
    (self.core, self.destination, self.concurrency) = (core, destination, concurrency)
    isOfBytes = Value.self == Data.self && transform.id.isEmpty
    if destination == .disk, isOfBytes {
      // The bytes stream into the store and are not collected in memory.
      load = { load, task, end in core.start(load, StoreForm(core: core) { _ in }, task, end: end) }
    } else {
      load = { load, task, end in
        guard destination != .disk || load.writes.contains(.disk) else { return end(.failure(load.noDurableStore)) }
        core.start(load, transform, task) { end($0.map { $0.with(()) }) }
      }
    }
  }

  // MARK: Adding requests

  func append(_ requests: [ResourceRequest]) {
    let items = requests.map { request in Result { () throws(CacheError) in try item(for: request) } }
    // The items are entered together. Otherwise the first could end, and its check begin, before the second is entered.
    let raised = change { state in
      state.listed = max(state.listed, requests.count)
      return zip(requests, items).compactMap { request, item -> (former: LoadPriority, level: LoadPriority.Level)? in
        state.last += 1
        let number = state.last
        guard case .success(let item) = item else {
          state.progress.total += 1
          if case .failure(let error) = item { state.fail(number, request.url, error) }
          return nil
        }
        let level = item.task.priority.level
        // A request with a method other than GET has an effect each time it is sent, so it is never a duplicate.
        if item.load.head.method == .get {
          if let former = state.numbers[item.key] {
            state.duplicates += 1
            state.waiting.raise(former, to: level)
            return state.items[former].map { ($0.task.priority, level) }
          }
          state.numbers[item.key] = number
        }
        state.progress.total += 1
        state.items[number] = item
        state.waiting.insert(number, level)
        return nil
      }
    }
    for (former, level) in raised { former.raise(to: level) }
    pump()
  }

  private func item(for request: ResourceRequest) throws(CacheError) -> Item {
    try CacheError.require("concurrency", concurrency, in: 1...)
    let identity = identity(of: request)
    var request = request
    request.options.priority = min(request.options.priority, .low)
    if destination == .memory { request.options.writes.formIntersection(.memory) }
    if destination == .disk, !isOfBytes {
      // A value that is only in memory must still be stored on disk, so memory is not read.
      request.options.reads.formIntersection(.disk)
      request.options.writes.formIntersection(.disk)
    }
    let load = try ResolvedRequest(request, core)
    return Item(
      load: load, key: load.resourceKey, task: LoadTask(id: load.id, priority: LoadPriority(request.options.priority)),
      identity: identity)
  }

  /// Makes a waiting item as urgent as another load of the same resource.
  func raise(_ key: CoalescingKey, to level: LoadPriority.Level) {
    let item = state.withLock { state in
      state.numbers[key].flatMap { state.waiting.raise($0, to: level) ? state.items[$0] : nil }
    }
    item?.task.priority.raise(to: level)
  }

  // MARK: Running loads

  var isPaused: Bool {
    get { state.withLock { $0.isPaused } }
    set {
      state.withLock { $0.isPaused = newValue }
      pump()
    }
  }

  /// Starts the items that may start. Only one thread at a time does this. A concurrent call, or a call from a load that ends at
  /// once, leaves its work to that thread.
  private func pump() {
    let begins = state.withLock { state in
      defer { state.isPumping = true }
      return !state.isPumping
    }
    guard begins else { return }
    while let (number, item) = next() { load(item.load, item.task) { self.ended(number, $0) } }
  }

  /// Returns the next item, which then counts as running.
  private func next() -> (Number, Item)? {
    change { state in
      guard !state.isPaused, state.progress.running < concurrency, let number = state.waiting.next(),
        let item = state.items[number]
      else {
        state.isPumping = false
        return nil
      }
      state.waiting.remove(number)
      state.progress.running += 1
      return (number, item)
    }
  }

  private func ended(_ number: Number, _ result: Result<Resource<Void>, CacheError>) {
    // What leaves the state is released outside the lock, because it may hold the last reference to an object of the app.
    let left = change { state -> (item: Item, load: ResolvedRequest?)? in
      guard let item = state.take(number) else { return nil }
      state.progress.running -= 1
      switch result {
      case .failure(let error): state.fail(number, item.load.url, error)
      case .success(let resource):
        let count: any WritableKeyPath<PrefetchProgress, Int> & Sendable =
          switch resource.source {
          case .memory, .disk: resource.validation == .failed ? \.unconfirmed : \.skipped
          case .revalidated, .network, .schemeHandler: \.loaded
          }
        state.progress[keyPath: count] += 1
        guard destination == .disk, let store = item.load.store else { break }
        state.stored.append(StoredItem(number: number, url: item.load.url, key: resource.key, store: store, count: count))
        // Without a check, the work of the load would not end.
        guard canCheck(state.stored) else { break }
        defer { state.lastStored = item.load }
        return (item, state.lastStored)
      }
      return (item, nil)
    }
    withExtendedLifetime(left) {}
    pump()
  }

  // MARK: Checking the store

  private func canCheck(_ stored: [StoredItem]) -> Bool { stored.count > (isOfBytes ? 1 : 0) }

  /// Returns the stored items to look for when no work is left, if any. Later ones may have evicted them. The last of them counts
  /// as running until the check ends.
  ///
  /// Bytes that were stored alone stay for the next check, because a store evicts no entry for itself.
  private func beginCheck(_ state: inout State) -> (items: [StoredItem], load: ResolvedRequest)? {
    guard state.progress.isFinished, canCheck(state.stored), let last = state.stored.last, let load = state.lastStored.take()
    else { return nil }
    defer { state.stored = [] }
    state.progress[keyPath: last.count] -= 1
    state.progress.running += 1
    return (state.stored, load)
  }

  private func check(_ stored: [StoredItem], _ load: ResolvedRequest) {
    Task.detached(priority: .utility) { [self] in
      var missing = await missing(stored, load)
      if !missing.isEmpty {
        // A slow store may still be writing some of them.
        await core.environment.writeDeadline.idle()
        missing = await self.missing(missing, load)
      }
      let reason = "the store does not have the response, which may not be stored, or the store is too small"
      change { [missing] state in
        state.progress.running -= 1
        if let last = stored.last { state.progress[keyPath: last.count] += 1 }
        for item in missing {
          state.progress[keyPath: item.count] -= 1
          state.fail(item.number, item.url, CacheError(.notCached, reason: reason, url: item.url.address))
        }
      }
      pump()
    }
  }

  /// Returns the items that their stores do not have. If a store fails, the rest of its bytes count as stored, because the loads
  /// have stored them.
  private func missing(_ stored: [StoredItem], _ load: ResolvedRequest) async -> [StoredItem] {
    var missing: [StoredItem] = []
    for items in Dictionary(grouping: stored, by: \.store.id).values {
      var hasFailed = false
      for (index, item) in items.enumerated() {
        let cache = TieredCache(load, resource: item.key.resource)
        // A store that evicts in the background has done so when it counts its entries.
        if index == 0 { _ = try? await cache.read { () throws(CacheError) in try await item.store.usage() } }
        let isStored = hasFailed && isOfBytes ? nil : await cache.contains(item.key, in: item.store)
        hasFailed = isStored == nil
        if !(isStored ?? isOfBytes) { missing.append(item) }
      }
    }
    return missing
  }

  // MARK: Cancelling

  func identity(of request: ResourceRequest) -> RequestIdentity { core.environment.identity(of: request) }

  /// Cancels the waiting and the running items of these requests, or all items.
  func cancel(_ requests: [ResourceRequest]? = nil) {
    let identities = requests.map { Set($0.map(identity)) }
    func isMeant(_ item: Item) -> Bool { identities?.contains(item.identity) ?? true }
    cancelWaiting(where: isMeant)
    for item in state.withLock({ $0.items.values.filter(isMeant) }) { item.task.cancel() }
  }

  /// Cancels the waiting items whose loads have a name, or all waiting items.
  func cancelWaiting(of name: CacheKey? = nil) {
    cancelWaiting { item in
      guard let name, case let itemName = item.load.settings.name else { return true }
      // `String` compares canonically, and a key byte by byte.
      return itemName == name.resource && CacheKey(resource: itemName) == name
    }
  }

  private func cancelWaiting(where isMeant: (Item) -> Bool) {
    // The items are released outside the lock, as in `ended`.
    let cancelled = change { state in
      state.items.filter { isMeant($0.value) }.keys.sorted().compactMap { number -> Item? in
        guard state.waiting.remove(number), let item = state.take(number) else { return nil }
        state.fail(number, item.load.url, .cancelled.about(item.load.address))
        return item
      }
    }
    withExtendedLifetime(cancelled) {}
  }

  // MARK: Reporting

  var progress: PrefetchProgress { state.withLock { $0.progress } }

  /// Changes the state and reports new progress to the watchers. Finishes them when no work is left.
  @discardableResult
  private func change<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, check) = state.withLock { state in
      let (before, wasWaiting) = (state.progress, !state.waiting.isEmpty)
      let result = body(&state)
      if state.waiting.isEmpty == wasWaiting {
        core.prefetches.withLock { queues in
          queues[ObjectIdentifier(self)] = wasWaiting ? nil : self
          core.hasPrefetches.store(!queues.isEmpty, ordering: .releasing)
        }
      }
      let check = beginCheck(&state)
      guard state.progress != before else { return (result, check) }
      // The progress is sent under the lock, so that each watcher receives it in order. `yield` resumes a task and runs no
      // caller's code.
      for watcher in state.watchers.values { watcher.yield(state.progress) }
      guard state.progress.isFinished else { return (result, check) }
      for watcher in state.watchers.values { watcher.finish() }
      state.watchers = [:]
      return (result, check)
    }
    if let check { self.check(check.items, check.load) }
    return result
  }

  func updates() -> AsyncStream<PrefetchProgress> {
    let (stream, continuation) = AsyncStream.makeStream(of: PrefetchProgress.self, bufferingPolicy: .bufferingNewest(1))
    state.withLock { state in
      continuation.yield(state.progress)
      guard !state.progress.isFinished else { return continuation.finish() }
      state.lastWatcher += 1
      state.watchers[state.lastWatcher] = continuation
      continuation.onTermination = { [weak self, id = state.lastWatcher] reason in
        // A finished stream needs no removal. `change` removes it under the lock.
        guard case .cancelled = reason else { return }
        _ = self?.state.withLock { $0.watchers.removeValue(forKey: id) }
      }
    }
    return stream
  }

  /// Returns the report when no work is left, or when the calling task is cancelled.
  func report() async -> PrefetchReport {
    for await _ in updates() {}
    return state.withLock { state in
      let (progress, latest) = (state.progress, state.failures.suffix(state.listed))
      var report = PrefetchReport()
      (report.loaded, report.skipped, report.unconfirmed) = (progress.loaded, progress.skipped, progress.unconfirmed)
      (report.duplicates, report.unlistedFailures) = (state.duplicates, progress.failed - latest.count)
      report.failed = latest.sorted { $0.number < $1.number }.map { ($0.url, $0.error) }
      return report
    }
  }
}

extension LoadCoordinator {
  /// Makes the waiting prefetches of a load's resource as urgent as the load.
  func raisePrefetches(of load: ResolvedRequest, to level: LoadPriority.Level) {
    // Usually no prefetch waits.
    guard hasPrefetches.load(ordering: .acquiring) else { return }
    let key = load.resourceKey
    for queue in prefetches.withLock({ Array($0.values) }) { queue.raise(key, to: level) }
  }

  /// Cancels the loads with a name, or all loads: see ``Flights/cancelLoads(of:)``. Waiting prefetches are cancelled first, so
  /// that none of them starts in the place of a running one.
  func cancelLoads(of name: CacheKey?) {
    for queue in prefetches.withLock({ Array($0.values) }) { queue.cancelWaiting(of: name) }
    flights.cancelLoads(of: name)
  }
}

extension TieredCache {
  /// Whether the durable store has an entry or its original, or `nil` if the store fails.
  fileprivate func contains(_ key: CacheKey, in store: any CacheStore) async -> Bool? {
    do throws(CacheError) {
      for key in Set([key, key.with(transform: "")]) {
        let entry = try await read { () throws(CacheError) in try await store.entry(for: key, range: 0..<0) }
        if entry != nil { return true }
      }
      return false
    } catch {
      return nil
    }
  }
}
