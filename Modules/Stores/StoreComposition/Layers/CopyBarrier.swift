internal import CacheCore

/// Prevents copies between the layers from overwriting later changes.
///
/// Changes of one resource run one at a time, because two concurrent commits could leave two layers with different responses. A
/// change of several resources waits until it can start for all of them. A **sweep** concerns all resources, and runs alone.
final class CopyBarrier: Sendable {
  /// A change that waits for its turn. Each of its resources has it in its queue.
  private final class Change: Sendable {
    let resources: [String]
    let continuation: Resumption<Void>

    init(_ resources: [String], _ continuation: Resumption<Void>) {
      (self.resources, self.continuation) = (resources, continuation)
    }
  }

  private struct Resource {
    var generation: UInt64 = 0
    var watches = 0
    /// The number of running and waiting changes, of which at most one is running.
    var changes = 0
    var isChanging = false
    /// The number of copies that are committing.
    var commits = 0
    var waiters: [Change] = []

    var isForgotten: Bool { watches == 0 && changes == 0 && commits == 0 }
  }

  private struct State {
    var resources: [String: Resource] = [:]
    /// The number of running and waiting sweeps, of which at most one is running.
    var sweeps = 0
    var isSweeping = false
    var sweepEpoch: UInt64 = 0
    /// The number of committing copies and running changes of all resources.
    var busy = 0
    var sweepWaiters: [Resumption<Void>] = []
    /// The waiters for a moment without changes. They check again when a change has ended.
    var idleWaiters: [Resumption<Void>] = []

    func isChanging(_ resource: String) -> Bool { sweeps > 0 || (resources[resource]?.changes ?? 0) > 0 }

    mutating func change(_ resource: String, _ body: (inout Resource) -> Void) {
      var value = resources[resource] ?? Resource()
      body(&value)
      resources[resource] = value.isForgotten ? nil : value
    }

    /// Starts the next change of a resource if possible. A waiting sweep comes before waiting changes.
    ///
    /// A change enters all its queues at once, so the oldest change is the first one in each of them. Two changes therefore never
    /// wait for each other.
    mutating func turn(_ name: String) -> [Resumption<Void>] {
      guard sweeps == 0 else { return sweepTurn() }
      guard let change = resources[name]?.waiters.first, change.resources.allSatisfy({ canStart(change, $0) }) else { return [] }
      for name in change.resources {
        self.change(name) { resource in
          resource.waiters.removeFirst()
          resource.isChanging = true
        }
      }
      busy += 1
      return [change.continuation]
    }

    private func canStart(_ change: Change, _ name: String) -> Bool {
      guard let resource = resources[name] else { return false }
      return !resource.isChanging && resource.commits == 0 && resource.waiters.first === change
    }

    private mutating func sweepTurn() -> [Resumption<Void>] {
      guard !isSweeping, busy == 0, !sweepWaiters.isEmpty else { return [] }
      isSweeping = true
      return [sweepWaiters.removeFirst()]
    }

    /// Starts the next sweep, or the first change of each resource.
    mutating func turns() -> [Resumption<Void>] {
      guard sweeps == 0 else { return sweepTurn() }
      return resources.filter { !$0.value.waiters.isEmpty }.keys.flatMap { turn($0) }
    }
  }

  /// The state of a resource before a lookup.
  final class Watch: Sendable {
    let resource: String
    fileprivate let generation: UInt64
    fileprivate let sweepEpoch: UInt64
    private let barrier: CopyBarrier

    fileprivate init(_ resource: String, _ barrier: CopyBarrier) {
      self.resource = resource
      self.barrier = barrier
      (generation, sweepEpoch) = barrier.state.withLock { state in
        state.change(resource) { $0.watches += 1 }
        return (state.resources[resource]?.generation ?? 0, state.sweepEpoch)
      }
    }

    deinit { barrier.state.withLock { $0.change(resource) { $0.watches -= 1 } } }
  }

  private let state = Lock(State())

  func snapshot(_ resource: String) -> Watch { Watch(resource, self) }

  // MARK: Copies

  /// Whether nothing has changed since the snapshot. If so, changes wait until ``endCommit(_:)``.
  func beginCommit(_ snapshot: Watch) -> Bool {
    state.withLock { state in
      guard let resource = state.resources[snapshot.resource], resource.generation == snapshot.generation, resource.changes == 0,
        state.sweepEpoch == snapshot.sweepEpoch, state.sweeps == 0
      else { return false }
      state.change(snapshot.resource) { $0.commits += 1 }
      state.busy += 1
      return true
    }
  }

  func endCommit(_ snapshot: Watch) {
    let waiters = state.withLock { state in
      state.change(snapshot.resource) { $0.commits -= 1 }
      state.busy -= 1
      return state.turn(snapshot.resource)
    }
    for waiter in waiters { waiter.resume() }
  }

  // MARK: Changes

  /// Waits for the turn of a change. Copies can no longer start to commit, and those that have started are waited for.
  ///
  /// - Parameter resources: The resources that change, each of them once, and at least one.
  func beginChange(_ resources: [String]) async {
    await begin { state, continuation in
      let change = Change(resources, continuation)
      for resource in resources {
        state.change(resource) { resource in
          resource.changes += 1
          resource.generation += 1
          resource.waiters.append(change)
        }
      }
      return state.turn(resources[0])
    }
  }

  func endChange(_ resources: [String]) {
    end { state in
      for resource in resources {
        state.change(resource) { resource in
          resource.changes -= 1
          resource.isChanging = false
          resource.generation += 1
        }
      }
      state.busy -= 1
      return resources.flatMap { state.turn($0) }
    }
  }

  /// Waits for the turn of a sweep, after running changes and committing copies.
  func beginSweep() async {
    await begin { state, continuation in
      state.sweeps += 1
      state.sweepEpoch += 1
      state.sweepWaiters.append(continuation)
      return state.turns()
    }
  }

  func endSweep() {
    end { state in
      state.sweeps -= 1
      state.isSweeping = false
      state.sweepEpoch += 1
      return state.turns()
    }
  }

  private func begin(
    _ queue: (inout State, Resumption<Void>) -> [Resumption<Void>]
  ) async {
    await withResumption { continuation in
      let next = state.withLock { queue(&$0, continuation) }
      for waiter in next { waiter.resume() }
    }
  }

  private func end(_ change: (inout State) -> [Resumption<Void>]) {
    let waiters = state.withLock { state in
      defer { state.idleWaiters = [] }
      return change(&state) + state.idleWaiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Waits until no change of the resource is running or waiting.
  func waitUntilIdle(_ resource: String) async {
    while state.withLock({ $0.isChanging(resource) }) {
      await withResumption { continuation in
        let isIdle = state.withLock { state in
          guard state.isChanging(resource) else { return true }
          state.idleWaiters.append(continuation)
          return false
        }
        if isIdle { continuation.resume() }
      }
    }
  }
}

/// The running and pending copies between the layers.
final class CopyTable: Sendable {
  /// The maximum number of concurrent promotions.
  private static let width = 4

  private struct State {
    var running: Set<CacheKey> = []
    var pendingWriteBacks: [CacheKey] = []
    /// The places in the backlog that commits in progress have reserved.
    var reserved = 0
    var isWritingBack = false
    /// The waiters, which check again after each change.
    var waiters: [Resumption<Bool>] = []
  }

  enum Beginning { case begun, running, busy }

  private let state = Lock(State())

  // MARK: Up

  func begin(_ key: CacheKey) -> Beginning {
    state.withLock { state in
      guard !state.running.contains(key) else { return .running }
      guard state.running.count < Self.width else { return .busy }
      state.running.insert(key)
      return .begun
    }
  }

  func end(_ key: CacheKey) { change { $0.running.remove(key) } }

  // MARK: Down

  /// - Returns: Whether the caller must start the writing back.
  func enqueueWriteBack(_ key: CacheKey) -> Bool {
    state.withLock { state in
      if !state.pendingWriteBacks.contains(key) { state.pendingWriteBacks.append(key) }
      defer { state.isWritingBack = true }
      return !state.isWritingBack
    }
  }

  /// Returns the next key to write back, or `nil` if none is left and the writing back ends.
  func nextWriteBack() -> CacheKey? {
    change { state in
      if state.pendingWriteBacks.isEmpty { state.isWritingBack = false }
      return state.pendingWriteBacks.isEmpty ? nil : state.pendingWriteBacks.removeFirst()
    }
  }

  func endWriteBack() { change { _ in } }

  func forget(_ keys: Set<CacheKey>) { change { $0.pendingWriteBacks.removeAll { keys.contains($0) } } }

  func forgetAll() { change { $0.pendingWriteBacks = [] } }

  // MARK: Waiting

  func settled(_ resource: String) async { await wait { !$0.running.contains { $0.resource == resource } } }

  func idle() async { await wait { $0.running.isEmpty && !$0.isWritingBack } }

  /// Waits until fewer than `limit` entries wait to be written back, and reserves a place among them until ``release()``.
  func reserve(_ limit: Int) async {
    await wait { state in
      guard state.pendingWriteBacks.count + state.reserved < limit else { return false }
      state.reserved += 1
      return true
    }
  }

  func release() { change { $0.reserved -= 1 } }

  private func wait(until attempt: @Sendable (inout State) -> Bool) async {
    var isDone = false
    while !isDone {
      isDone = await withResumption { continuation in
        let isOver = state.withLock { state in
          guard !attempt(&state) else { return true }
          state.waiters.append(continuation)
          return false
        }
        if isOver { continuation.resume(returning: true) }
      }
    }
  }

  @discardableResult
  private func change<Result>(_ body: (inout State) -> Result) -> Result {
    let (result, waiters) = state.withLock { state in
      let result = body(&state)
      defer { state.waiters = [] }
      return (result, state.waiters)
    }
    for waiter in waiters { waiter.resume(returning: false) }
    return result
  }
}
