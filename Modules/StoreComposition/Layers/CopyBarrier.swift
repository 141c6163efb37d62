internal import CacheCore

/// Prevents copies between the layers from overwriting later changes.
///
/// Changes of one resource run one at a time, because two concurrent commits could leave two layers with different responses. A
/// removal of all entries runs alone.
final class CopyBarrier: Sendable {
  private struct Resource {
    var generation: UInt64 = 0
    var watches = 0
    /// The number of running and waiting changes, of which at most one is running.
    var changes = 0
    var isChanging = false
    /// The number of copies that are committing.
    var commits = 0
    var waiters: [CheckedContinuation<Void, Never>] = []

    var isForgotten: Bool { watches == 0 && changes == 0 && commits == 0 }
  }

  private struct State {
    var resources: [String: Resource] = [:]
    /// The number of running and waiting removals of all entries, of which at most one is running.
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

    /// Starts the next change if possible. A waiting removal of all entries comes before waiting changes.
    mutating func turn(_ name: String) -> [CheckedContinuation<Void, Never>] {
      guard sweeps == 0 else { return sweepTurn() }
      guard var resource = resources[name], !resource.isChanging, resource.commits == 0, !resource.waiters.isEmpty else {
        return []
      }
      let next = resource.waiters.removeFirst()
      resource.isChanging = true
      resources[name] = resource
      busy += 1
      return [next]
    }

    private mutating func sweepTurn() -> [CheckedContinuation<Void, Never>] {
      guard !isSweeping, busy == 0, !sweepWaiters.isEmpty else { return [] }
      isSweeping = true
      return [sweepWaiters.removeFirst()]
    }

    /// Starts the next removal of all entries, or the first change of each resource.
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
  func beginChange(_ resource: String) async {
    await begin { state, continuation in
      state.change(resource) { resource in
        resource.changes += 1
        resource.generation += 1
        resource.waiters.append(continuation)
      }
      return state.turn(resource)
    }
  }

  func endChange(_ resource: String) {
    end { state in
      state.change(resource) { resource in
        resource.changes -= 1
        resource.isChanging = false
        resource.generation += 1
      }
      state.busy -= 1
      return state.turn(resource)
    }
  }

  /// Waits for the turn of a removal of all entries, after running changes and committing copies.
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
