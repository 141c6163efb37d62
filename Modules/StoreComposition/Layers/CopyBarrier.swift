internal import CacheCore

/// Prevents copies between the layers from overwriting later changes.
///
/// Changes of one resource run one at a time, because two concurrent commits could leave two layers with different responses. A
/// change of several resources waits until it can start for all of them. A **sweep** concerns all resources, and runs alone.
final class CopyBarrier: Sendable {
  /// A change that waits for its turn. Each of its resources has it in its queue.
  private final class Change: Sendable {
    let resources: [String]
    let continuation: CheckedContinuation<Void, Never>

    init(_ resources: [String], _ continuation: CheckedContinuation<Void, Never>) {
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
    var sweepWaiters: [CheckedContinuation<Void, Never>] = []
    /// The waiters for a moment without changes. They check again when a change has ended.
    var idleWaiters: [CheckedContinuation<Void, Never>] = []

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
    mutating func turn(_ name: String) -> [CheckedContinuation<Void, Never>] {
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

    private mutating func sweepTurn() -> [CheckedContinuation<Void, Never>] {
      guard !isSweeping, busy == 0, !sweepWaiters.isEmpty else { return [] }
      isSweeping = true
      return [sweepWaiters.removeFirst()]
    }

    /// Starts the next sweep, or the first change of each resource.
    mutating func turns() -> [CheckedContinuation<Void, Never>] {
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
    _ queue: (inout State, CheckedContinuation<Void, Never>) -> [CheckedContinuation<Void, Never>]
  ) async {
    await withCheckedContinuation { continuation in
      let next = state.withLock { queue(&$0, continuation) }
      for waiter in next { waiter.resume() }
    }
  }

  private func end(_ change: (inout State) -> [CheckedContinuation<Void, Never>]) {
    let waiters = state.withLock { state in
      defer { state.idleWaiters = [] }
      return change(&state) + state.idleWaiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Waits until no change of the resource is running or waiting.
  func waitUntilIdle(_ resource: String) async {
    while state.withLock({ $0.isChanging(resource) }) {
      await withCheckedContinuation { continuation in
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
