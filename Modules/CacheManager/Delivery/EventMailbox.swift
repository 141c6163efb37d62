internal import CacheCore

/// The mailbox of one waiter. It delivers events in order and one at a time. It then delivers the end exactly once, and nothing
/// after it.
///
/// The thread that queues a delivery also delivers it, unless another thread is already delivering. That thread then delivers the
/// new one too. No callback is ever called under a lock.
final class EventMailbox<Value: Sendable>: Sendable {
  private enum Delivery {
    case event(ResourceEvent<Value>)
    case end(Result<Resource<Value>, CacheError>)
  }

  private struct State {
    var deliveries: [Delivery] = []
    var isDelivering = false
    var isEnded = false
    var deadline: Task<Void, Never>?
    /// Joins the load without requests that replaces this one at the deadline.
    var fallBack: (@Sendable (EventMailbox, ResolvedRequest) -> Void)?
    /// Whether a stored response may be used at the deadline.
    var hasFallback = false
    /// Whether a request is in flight, whose failure the deadline then is.
    var isInFlight = false
    /// The error of the deadline, after the load has been replaced.
    var lateness: CacheError?

    mutating func begin() -> Bool {
      guard !isDelivering else { return false }
      isDelivering = true
      return true
    }

    /// Removes the next delivery. If there is none, returns `nil` and stops delivering in the same step.
    mutating func next() -> Delivery? {
      guard !deliveries.isEmpty else {
        isDelivering = false
        return nil
      }
      return deliveries.removeFirst()
    }
  }

  private let load: ResolvedRequest
  private let task: LoadTask
  private let sink: LoadCoordinator.Sink<Value>
  private let start: Duration
  private let state = Lock(State())

  /// - Parameter startedAt: The start of the load, if the observer has been informed of it.
  init(load: ResolvedRequest, task: LoadTask, sink: LoadCoordinator.Sink<Value>, startedAt: Duration? = nil) {
    self.load = load
    self.task = task
    self.sink = sink
    start = startedAt ?? load.clock.uptime
    if startedAt == nil { load.observe(.started(url: load.observedURL)) }
  }

  /// Starts the deadline of this waiter for the whole load. It does not affect the other waiters.
  ///
  /// - Parameter fallBack: Joins the load that replaces this one at the deadline, if a stored response may be used. That load
  ///   sends no request, and has a short time to read the response.
  func limit(to timeout: Duration, _ fallBack: @escaping @Sendable (EventMailbox, ResolvedRequest) -> Void) {
    let (load, task, clock) = (load, task, load.clock)
    let deadline = Task.detached {
      guard (try? await clock.sleep(for: timeout)) != nil else { return }
      let error = CacheError(.timedOut, reason: "not loaded within \(timeout)", url: load.address)
      task.expire(with: error)
      guard (try? await clock.sleep(for: max(.milliseconds(100), timeout / 10))) != nil else { return }
      task.end(with: error)
    }
    let isLate = state.withLock { state in
      (state.deadline, state.fallBack) = (deadline, fallBack)
      return state.isEnded
    }
    if isLate { deadline.cancel() }
  }

  private func expire(_ error: CacheError) {
    let (fallBack, isInFlight) = state.withLock { state in
      state.lateness = error
      return (state.hasFallback ? state.fallBack.take() : nil, state.isInFlight)
    }
    if isInFlight { load.failures.note(error, of: load) }
    guard let fallBack else { return end(.failure(error)) }
    task.rejoin()
    fallBack(self, load.with { $0.outage = error })
  }

  /// The waiter through which a coalesced load reports to this mailbox.
  ///
  /// - Parameter unpack: Returns the value in a coalesced load's output, or `nil` if the output has none.
  func waiter<Output: Shareable>(
    _ unpack: @escaping @Sendable (Output) -> (Value, LoadOutcome)?
  ) -> CoalescedLoad<Output>.Waiter {
    .init { message in
      switch message {
      case .post(.progress(let progress)): if self.sink.event != nil { self.post(.progress(progress)) }
      case .post(.stale(let output)): if let old = self.resource(unpack(output)) { self.post(.stale(old)) }
      case .post(.foundFallback): self.state.withLock { $0.hasFallback = true }
      case .post(.inFlight(let isInFlight)): self.state.withLock { $0.isInFlight = isInFlight }
      case .deliver: self.deliver()
      case .end(.success(let output)):
        self.end(self.resource(unpack(output)).map { .success($0) } ?? .failure(.cancelled))
      case .end(.failure(let error)):
        // The caller asked for a response in time. The reason why no stored one could be read is in the observer's events.
        self.end(.failure(error.isCancellation ? error : self.state.withLock { $0.lateness } ?? error))
      case .expired(let error): self.expire(error)
      // The coordinator starts another load: see `loadingAlone(by:)`.
      case .loadAlone: break
      }
    }
  }

  private func resource(_ unpacked: (value: Value, outcome: LoadOutcome)?) -> Resource<Value>? {
    unpacked.map { $0.outcome.resource($0.value, clock: load.clock, startedAt: start) }
  }

  private func post(_ event: ResourceEvent<Value>) {
    if case .stale(let resource) = event, sink.endsWithStale {
      enqueueEnd(.success(resource))
    } else {
      state.withLock { if !$0.isEnded { $0.deliveries.append(.event(event)) } }
    }
  }

  /// Ends the load. If no other delivery is queued, the result is delivered without queueing, as in nearly all loads.
  func end(_ result: Result<Resource<Value>, CacheError>) {
    let isImmediate = state.withLock { state in
      guard !state.isEnded, state.deliveries.isEmpty, state.begin() else { return false }
      state.isEnded = true
      return true
    }
    if isImmediate { return conclude(result) }
    enqueueEnd(result)
    deliver()
  }

  private func enqueueEnd(_ result: Result<Resource<Value>, CacheError>) {
    state.withLock { state in
      guard !state.isEnded else { return }
      state.isEnded = true
      state.deliveries.append(.end(result))
    }
  }

  private func deliver() {
    guard state.withLock({ $0.begin() }) else { return }
    while let delivery = state.withLock({ $0.next() }) {
      switch delivery {
      case .event(let event): sink.event?(event)
      case .end(let result): conclude(result)
      }
    }
  }

  private func conclude(_ result: Result<Resource<Value>, CacheError>) {
    state.withLock { $0.deadline }?.cancel()
    let named = result.mapError { $0.about(load.address) }
    load.observeEnd(named, startedAt: start)
    sink.end(named)
    task.finish()
  }
}
