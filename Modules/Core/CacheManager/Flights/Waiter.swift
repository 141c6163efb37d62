internal import CacheCore

/// An output that states whether waiters other than the first may receive it.
protocol Shareable: Sendable {
  var isShareable: Bool { get }
  /// Whether the output lacks the body, because stored values were enough for the waiters that the work knew.
  var isBodyLeft: Bool { get }
}

extension Shareable {
  var isBodyLeft: Bool { false }
}

/// An event of a flight before its end.
enum FlightEvent<Output: Sendable>: Sendable {
  case progress(LoadProgress)
  /// An output that may be outdated. The final output follows.
  case stale(Output)
  /// A stored response may be used if the work fails. The work reports it when it sends the request.
  case foundFallback
  /// Whether the downloader has a request of the work whose response has not ended.
  case inFlight(Bool)
  /// The work requests another URL than that of the load: the target of a redirect, or an alternative source.
  case otherURL
}

/// The needs of a load, or of a flight, that waits for flights.
struct WaiterNeeds<Output: Shareable>: Sendable {
  /// The priority if it can be raised while the waiter waits, otherwise `nil`.
  var priority: LoadPriority?
  /// Whether the waiter needs the body itself, and not only stored values.
  var wantsBytes = true
  /// Whether the waiter receives progress.
  var wantsProgress = false
  /// Whether a stale output is the end for the waiter.
  var endsWithStale = true
  /// Whether a flight calls ``Flights/endLoad()`` when the waiter gets its last event. The executor of a caller may be blocked,
  /// so its load does not count until the caller resumes.
  var isCounted = false
  /// Receives ``FlightEvent/foundFallback``, ``FlightEvent/inFlight(_:)`` and ``FlightEvent/otherURL``, for a flight that waits
  /// for another one.
  var forward: (@Sendable (FlightEvent<Output>) -> Void)?

  /// Whether an output satisfies the needs of the waiter.
  func accepts(_ output: Output) -> Bool { !(wantsBytes && output.isBodyLeft) }

  /// Whether the waiter waits for no other flight after an ending.
  func isLast(_ ending: Waiter<Output>.Ending) -> Bool {
    switch ending {
    case .output(let output): accepts(output)
    case .failed: true
    case .expired(_, let hasFallback, _): !hasFallback
    case .alone: false
    }
  }
}

/// A waiter of one flight, which keeps its events until a task pulls them one by one. So no code of a caller runs under a lock.
///
/// A load may need several flights, one after the other: one of its own if an output was for another waiter alone, or one
/// without requests after its deadline. It is a new waiter in each.
struct Waiter<Output: Shareable>: Sendable {
  enum Event: Sendable {
    case progress(LoadProgress)
    case stale(Output)
    /// The last event.
    case ended(Ending)
  }

  enum Ending: Sendable {
    case output(Output)
    case failed(CacheError)
    /// The output is for another waiter alone. This waiter needs a flight of its own.
    case alone
    /// The deadline has passed, which is this error.
    ///
    /// - Parameters:
    ///   - hasFallback: Whether a stored response may be used.
    ///   - isInFlight: Whether a request is in flight, whose failure the deadline then is.
    case expired(CacheError, hasFallback: Bool, isInFlight: Bool)

    init(_ result: Result<Output, CacheError>) {
      switch result {
      case .success(let output): self = .output(output)
      case .failure(let error): self = .failed(error)
      }
    }
  }

  let flight: Flight<Output>
  /// The number of the waiter in its flight.
  let number: Int
  let needs: WaiterNeeds<Output>

  /// Waits for the end of the flight in the calling task, whose cancellation ends the wait.
  ///
  /// - Parameters:
  ///   - joined: Called when a cancellation, or a raise of the priority, reaches the flight.
  ///   - progress: Called with the progress.
  ///   - stale: Called with a stale output that is not the end for the waiter.
  func ending(
    joined: () -> Void = {}, progress: (LoadProgress) -> Void = { _ in }, stale: (Output) async -> Void = { _ in }
  ) async -> Ending {
    let observation = needs.priority?.onRaise { [weak flight] in flight?.raise(to: $0) }
    defer { observation?.cancel() }
    // The raise follows the registration, because the observer does not receive earlier raises.
    if let priority = needs.priority { flight.raise(to: priority.level) }
    return await withTaskCancellationHandler {
      joined()
      while true {
        switch await next() {
        case .progress(let report): progress(report)
        case .stale(let output): await stale(output)
        case .ended(let ending): return ending
        }
      }
    } onCancel: {
      leave(.cancelled)
    }
  }

  /// Waits for the next event.
  func next() async -> Event { await flight.next(number) }

  /// Leaves the flight with an error. Does nothing if the flight has ended for the waiter, or if its waiters can no longer leave.
  func leave(_ error: CacheError, atDeadline: Bool = false) { flight.leave(number, error, atDeadline: atDeadline) }
}

extension Task where Failure == Never, Success == Void {
  /// Begins work on the caller's thread, or on another one where callers are often on the main thread.
  static func begun(
    on executor: (any TaskExecutor)? = nil, priority: TaskPriority, isImmediate: Bool = true,
    _ work: @escaping @Sendable @isolated(any) () async -> Void
  ) -> Task {
    #if !canImport(Darwin)
    if isImmediate { return Task.immediateDetached(priority: priority, executorPreference: executor, operation: work) }
    #endif
    return Task.detached(executorPreference: executor, priority: priority, operation: work)
  }

  /// Raises the priority of the task, on systems that can raise it from outside the task.
  func escalate(to level: LoadPriority.Level) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) { escalatePriority(to: TaskPriority(level)) }
  }
}

extension TaskPriority {
  /// The priority of a task that works for a load of this level.
  ///
  /// On systems that cannot raise a task from outside, the priority is at least medium, because a visible load may join.
  init(_ level: LoadPriority.Level) {
    let priority: TaskPriority =
      switch level {
      case .veryLow: .background
      case .low: .utility
      case .normal: .medium
      case .high, .veryHigh: .high
      }
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      self = priority
    } else {
      self = max(priority, .medium)
    }
  }
}
