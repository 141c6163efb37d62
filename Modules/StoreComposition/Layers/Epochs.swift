internal import CacheCore

/// Keeps copies between the layers from overtaking changes: what was found before a change must not be put over it.
final class Epochs: Sendable {
  private struct Resource {
    var epoch: UInt64 = 0
    var watches = 0
    /// Changes under way.
    var changes = 0
    /// Copies that are being committed.
    var commits = 0
    var waiters: [CheckedContinuation<Void, Never>] = []

    var isForgotten: Bool { watches == 0 && changes == 0 && commits == 0 && waiters.isEmpty }
  }

  private struct State {
    var resources: [String: Resource] = [:]
    /// Removals of everything, under way.
    var sweeps = 0
    var sweepEpoch: UInt64 = 0
    var commits = 0
    var sweepWaiters: [CheckedContinuation<Void, Never>] = []
    /// Who waits for a moment without changes looks again when one has ended.
    var calmWaiters: [CheckedContinuation<Void, Never>] = []

    func isChanging(_ resource: String) -> Bool { sweeps > 0 || (resources[resource]?.changes ?? 0) > 0 }

    mutating func change(_ resource: String, _ body: (inout Resource) -> Void) {
      var value = resources[resource] ?? Resource()
      body(&value)
      resources[resource] = value.isForgotten ? nil : value
    }
  }

  /// What a look remembers of the moment before it.
  final class Watch: Sendable {
    let resource: String
    fileprivate let epoch: UInt64
    fileprivate let sweepEpoch: UInt64
    private let epochs: Epochs

    fileprivate init(_ resource: String, _ epochs: Epochs) {
      self.resource = resource
      self.epochs = epochs
      (epoch, sweepEpoch) = epochs.state.withLock { state in
        state.change(resource) { $0.watches += 1 }
        return (state.resources[resource]?.epoch ?? 0, state.sweepEpoch)
      }
    }

    deinit { epochs.state.withLock { $0.change(resource) { $0.watches -= 1 } } }
  }

  private let state = Lock(State())

  func watch(_ resource: String) -> Watch { Watch(resource, self) }

  // MARK: Copies

  /// Whether nothing has changed since; then changes wait until ``endCommit(_:)``.
  func beginCommit(_ watch: Watch) -> Bool {
    state.withLock { state in
      guard let resource = state.resources[watch.resource], resource.epoch == watch.epoch, resource.changes == 0,
        state.sweepEpoch == watch.sweepEpoch, state.sweeps == 0
      else { return false }
      state.change(watch.resource) { $0.commits += 1 }
      state.commits += 1
      return true
    }
  }

  func endCommit(_ watch: Watch) {
    let waiters = state.withLock { state in
      var waiters: [CheckedContinuation<Void, Never>] = []
      state.change(watch.resource) { resource in
        resource.commits -= 1
        guard resource.commits == 0 else { return }
        waiters = resource.waiters
        resource.waiters = []
      }
      state.commits -= 1
      if state.commits == 0 {
        waiters += state.sweepWaiters
        state.sweepWaiters = []
      }
      return waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  // MARK: Changes

  /// Copies that have not begun to commit won't; those that have are waited for.
  func beginChange(_ resource: String) async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        var isFree = true
        state.change(resource) { resource in
          resource.changes += 1
          resource.epoch += 1
          isFree = resource.commits == 0
          if !isFree { resource.waiters.append(continuation) }
        }
        return isFree
      }
      if isFree { continuation.resume() }
    }
  }

  func endChange(_ resource: String) {
    end { state in
      state.change(resource) { resource in
        resource.changes -= 1
        resource.epoch += 1
      }
    }
  }

  func beginSweep() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        state.sweeps += 1
        state.sweepEpoch += 1
        if state.commits > 0 { state.sweepWaiters.append(continuation) }
        return state.commits == 0
      }
      if isFree { continuation.resume() }
    }
  }

  func endSweep() {
    end { state in
      state.sweeps -= 1
      state.sweepEpoch += 1
    }
  }

  private func end(_ change: (inout State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      defer { state.calmWaiters = [] }
      return state.calmWaiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Returns when nobody changes the resource.
  func calm(_ resource: String) async {
    while state.withLock({ $0.isChanging(resource) }) {
      await withCheckedContinuation { continuation in
        let isCalm = state.withLock { state in
          guard state.isChanging(resource) else { return true }
          state.calmWaiters.append(continuation)
          return false
        }
        if isCalm { continuation.resume() }
      }
    }
  }
}
