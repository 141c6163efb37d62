internal import CacheCore

/// A sink that ends exactly once, and is told nothing after its end.
final class OnceSink<Value: Sendable>: Sendable {
  private struct State {
    var isEnded = false
    var deadline: Task<Void, Never>?
  }

  private let load: ResolvedLoad
  private let task: LoadTask
  private let sink: LoadCore.Sink<Value>
  private let start: Duration
  private let state = Lock(State())

  init(load: ResolvedLoad, task: LoadTask, sink: LoadCore.Sink<Value>) {
    self.load = load
    self.task = task
    self.sink = sink
    start = load.clock.uptime
  }

  /// The whole load's deadline: this waiter's own, the others' go on.
  func limit(to timeout: Duration?, clock: any CacheClock) {
    guard let timeout else { return }
    let task = task
    let address = load.address
    let deadline = Task.detached {
      guard (try? await clock.sleep(for: timeout)) != nil else { return }
      task.end(with: CacheError(.timedOut, reason: "not loaded within \(timeout)", url: address))
    }
    let isLate = state.withLock { state in
      state.deadline = deadline
      return state.isEnded
    }
    if isLate { deadline.cancel() }
  }

  func event(_ event: ResourceEvent<Value>) {
    if state.withLock({ !$0.isEnded }) { sink.event(event) }
  }

  /// A value that may be outdated: the answer for whom one is enough, an event for the others.
  func stale(_ resource: Resource<Value>) {
    if sink.endsWithStale { end(.success(resource)) } else { event(.stale(resource)) }
  }

  func end(_ result: Result<Resource<Value>, CacheError>) {
    let (isFirst, deadline) = state.withLock { state in
      defer { state.isEnded = true }
      return (!state.isEnded, state.deadline)
    }
    guard isFirst else { return }
    deadline?.cancel()
    let named = result.mapError { $0.about(load.address) }
    load.observeEnd(named, startedAt: start)
    sink.end(named)
    // After a stale value, what brings the fresh one goes on without this waiter.
    task.finish()
  }
}
