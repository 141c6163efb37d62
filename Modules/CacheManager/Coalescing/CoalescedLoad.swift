internal import CacheCore

/// An event of a coalesced load, before its end.
enum CoalescedLoadEvent<Output: Sendable>: Sendable {
  case progress(LoadProgress)
  /// An output that may be outdated. The final output follows.
  case stale(Output)
  /// A stored response may be used if the load fails. The load reports it when it sends the request.
  case foundFallback
  /// Whether the downloader has a request of the load whose response has not ended.
  case inFlight(Bool)

  /// Merges two progress reports that the consumer has not taken yet into the later one. Returns `nil` for other events.
  static func merge(_ earlier: Self, _ later: Self) -> Self? {
    if case .progress = earlier, case .progress = later { return later }
    return nil
  }
}

/// An output that states whether waiters other than the first may receive it.
protocol Shareable: Sendable {
  var isShareable: Bool { get }
}

/// The reason why a waiter leaves a coalesced load.
enum LeaveReason: Sendable {
  /// The waiter ends with this error, which the waiter receives.
  case failed(CacheError)
  /// The deadline of the waiter has passed, which is this error. The waiter receives ``CoalescedLoad/Message/expired(_:)``.
  case expired(CacheError)
  /// A stale value was enough for the waiter. It receives nothing more, and the work continues without it.
  case satisfied
}

/// A coalesced load of any output type.
protocol AnyCoalescedLoad: AnyObject, Sendable {
  func retire()
  func dismissWaiters(_ error: CacheError)
  func ended() async
}

/// One piece of work that many waiters share. It ends exactly once for each waiter.
///
/// Cancelling one waiter never cancels another. When the last waiter leaves, the work is cancelled and the coalesced load accepts
/// no more waiters. A later request starts a new load. If a waiter left because a stale value was enough, the work that obtains
/// the fresh value continues without waiters.
final class CoalescedLoad<Output: Shareable>: AnyCoalescedLoad {
  /// A message to a waiter.
  enum Message: Sendable {
    /// An event to queue. Sent in order, under the lock of the coalesced load. The waiter must only store it and must not call
    /// anything.
    case post(CoalescedLoadEvent<Output>)
    /// The request to deliver the queued events. Sent outside the lock.
    case deliver
    case end(Result<Output, CacheError>)
    /// Sent in place of `end` if the outcome is for the first waiter alone. This waiter then needs a load of its own.
    case loadAlone
    /// Sent in place of `end` at the waiter's deadline, which is this error. A load without requests may have an outcome, so the
    /// waiter ends itself.
    case expired(CacheError)
  }

  /// One waiter: a structure around a single closure. A load wraps its waiter several times, and each further closure costs
  /// memory.
  struct Waiter: Sendable {
    let receive: @Sendable (Message) -> Void

    /// Returns a waiter that calls `load` if the outcome is for the first waiter alone.
    func loadingAlone(by load: @escaping @Sendable () -> Void) -> Waiter {
      Waiter { message in
        if case .loadAlone = message { load() } else { receive(message) }
      }
    }
  }

  private struct State {
    /// The waiters in the order in which they joined, with their tokens.
    var waiters: [(token: Int, waiter: Waiter)]
    var lastToken = CoalescedLoad.firstToken
    var task: Task<Void, Never>?
    /// Whether the load accepts no more waiters.
    var isClosed = false
    var isCancelled = false
    var isOver = false
    /// Whether the manager is closing. The work then ends with its last waiter.
    var isRetired = false
    var survivesItsWaiters = false
    /// Whether the waiters can no longer leave.
    var isSettled = false
    var lastProgress: LoadProgress?
    var stale: Output?
    var hasFallback = false
    var isInFlight = false
    var closers: [CheckedContinuation<Void, Never>] = []

    /// Closes the load and returns `true` if the work must be cancelled now, because no waiter needs it.
    mutating func cancelsWhenUnattended() -> Bool {
      guard waiters.isEmpty, !isCancelled, !isOver, isRetired || !survivesItsWaiters else { return false }
      isClosed = true
      isCancelled = true
      return true
    }
  }

  /// The token of the first waiter.
  static var firstToken: Int { 1 }

  private let state: Lock<State>
  /// The identifier of the load that started this one.
  let id: LoadID
  /// The number of the load in the order of creation. ``RequestCoalescer/joinOpen(_:before:task:waiter:_:)`` lets a load wait
  /// only for earlier loads, so two loads never wait for each other.
  let number: Int
  /// The position of the ``InvalidationLog`` when the load was created.
  let logPosition: Int
  let priority: LoadPriority
  /// The representation that the waiters want, or `nil` for the bytes and a stored original.
  let representation: RequestedRepresentation?
  private let coalescer: RequestCoalescer
  private let coalescingID: CoalescedLoadID

  /// Creates a load with its first waiter. Without one, a manager that closes at this moment would end the load before it has
  /// begun, and then wait for it.
  ///
  /// - Parameters:
  ///   - id: The identifier of the load that starts this one.
  ///   - coalescer: The coalescer that the load leaves when it accepts no more waiters, and when it has ended.
  ///   - coalescingID: The identity by which waiters find the load.
  ///   - number: The number of the load, higher than that of every earlier coalesced load.
  ///   - logPosition: The current position of the ``InvalidationLog``.
  ///   - priority: The priority of the load.
  ///   - representation: The representation that the first waiter wants. Waiters that join add to it.
  ///   - first: The first waiter, whose token is ``firstToken``.
  init(
    id: LoadID, in coalescer: RequestCoalescer, as coalescingID: CoalescedLoadID, number: Int, logPosition: Int,
    priority: LoadPriority, representation: RequestedRepresentation?, first waiter: Waiter
  ) {
    state = Lock(State(waiters: [(Self.firstToken, waiter)]))
    self.id = id
    self.coalescer = coalescer
    self.coalescingID = coalescingID
    self.number = number
    self.logPosition = logPosition
    self.priority = priority
    self.representation = representation
  }

  /// Starts the work, which reports to the coalesced load that `body` receives. If every waiter has already left, no work starts.
  ///
  /// On servers the work begins on the caller's thread and leaves it at the first suspension. Planning takes microseconds, and a
  /// change of threads takes ten times as long. On Apple platforms the caller's thread is often the main thread, so the work
  /// begins on another one.
  ///
  /// - Parameters:
  ///   - executor: The executor on which the work continues after a suspension, or `nil` for the cooperative pool.
  ///   - body: The work.
  func start(
    on executor: (any TaskExecutor)? = nil,
    _ body: @escaping @Sendable (CoalescedLoad<Output>) async -> Result<Output, CacheError>
  ) {
    guard !state.withLock({ $0.isCancelled }) else { return finish(.failure(.cancelled)) }
    let level = priority.level
    #if canImport(Darwin)
    let task = Task.detached(executorPreference: executor, priority: TaskPriority(level)) { self.finish(await body(self)) }
    #else
    let task = Task.immediateDetached(priority: TaskPriority(level), executorPreference: executor) {
      self.finish(await body(self))
    }
    #endif
    let isCancelled = state.withLock { state in
      state.task = task
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
    // A raise before the task was stored did not reach the task.
    if priority.level > level { task.escalate(to: priority.level) }
  }

  /// Raises the priority of the load and of its task. Never lowers either.
  func raise(to level: LoadPriority.Level) {
    guard level > priority.level else { return }
    priority.raise(to: level)
    state.withLock { $0.task }?.escalate(to: level)
  }

  /// Adds a waiter, unless the load accepts no more waiters. The waiter first receives the stale output and the latest progress,
  /// if there are any.
  ///
  /// - Returns: The token for ``leave(_:_:)``, or `nil` if the load accepts no more waiters.
  func join(_ waiter: Waiter) -> Int? {
    let token: Int? = state.withLock { state in
      guard !state.isClosed else { return nil }
      state.lastToken += 1
      state.waiters.append((state.lastToken, waiter))
      if state.hasFallback { waiter.receive(.post(.foundFallback)) }
      if state.isInFlight { waiter.receive(.post(.inFlight(true))) }
      if let stale = state.stale { waiter.receive(.post(.stale(stale))) }
      if let progress = state.lastProgress { waiter.receive(.post(.progress(progress))) }
      return state.lastToken
    }
    if token != nil { waiter.receive(.deliver) }
    return token
  }

  /// Removes one waiter and does not affect the other waiters. Does nothing if the load is settled or has ended for the waiter.
  func leave(_ token: Int, _ reason: LeaveReason) {
    let (waiter, task, cancels) = state.withLock { state -> (Waiter?, Task<Void, Never>?, Bool) in
      guard !state.isSettled, let index = state.waiters.firstIndex(where: { $0.token == token }) else {
        return (nil, nil, false)
      }
      let waiter = state.waiters.remove(at: index).waiter
      if case .satisfied = reason { state.survivesItsWaiters = true }
      return (waiter, state.task, state.cancelsWhenUnattended())
    }
    // The load that replaces this one must exist before this one can end. Otherwise `close()` may return between them.
    if case .expired(let error) = reason { waiter?.receive(.expired(error)) }
    if cancels { cancel(task) }
    if case .failed(let error) = reason { waiter?.receive(.end(.failure(error))) }
  }

  /// Stops waiters from leaving, because the outcome is about to be made. Every present waiter gets the outcome, and a
  /// cancellation comes too late. Returns `false` if no waiter is left.
  func settle() -> Bool {
    state.withLock { state in
      state.isSettled = !state.waiters.isEmpty
      return state.isSettled
    }
  }

  /// Cancels the work as soon as no waiter is left, even if the work would have continued without waiters. Called when the
  /// manager closes.
  func retire() {
    let (task, cancels) = state.withLock { state in
      state.isRetired = true
      return (state.task, state.cancelsWhenUnattended())
    }
    if cancels { cancel(task) }
  }

  /// Ends every waiter with `error`, and accepts no more. Does nothing for waiters that are about to get the outcome.
  func dismissWaiters(_ error: CacheError) {
    let waiters = state.withLock { state in
      state.isClosed = true
      return state.waiters
    }
    for (token, _) in waiters { leave(token, .failed(error)) }
  }

  private func cancel(_ task: Task<Void, Never>?) {
    coalescer.forget(self, coalescingID)
    task?.cancel()
  }

  /// Whether any waiter still waits for the outcome.
  var isAwaited: Bool { state.withLock { !$0.waiters.isEmpty } }

  /// Whether more than one waiter has ever joined.
  var hasBeenShared: Bool { state.withLock { $0.lastToken > Self.firstToken } }

  /// Whether a waiter left because a stale value was enough. The outcome of the work then may not reach any waiter.
  var hasSatisfied: Bool { state.withLock { $0.survivesItsWaiters } }

  /// Returns when the work has ended and every waiter has received the outcome.
  func ended() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.isOver { return true }
        state.closers.append(continuation)
        return false
      }
      if isOver { continuation.resume() }
    }
  }

  func report(_ event: CoalescedLoadEvent<Output>) {
    let waiters = state.withLock { state in
      switch event {
      case .progress(let progress): state.lastProgress = progress
      case .stale(let output): state.stale = output
      case .foundFallback: state.hasFallback = true
      case .inFlight(let isInFlight): state.isInFlight = isInFlight
      }
      for (_, waiter) in state.waiters { waiter.receive(.post(event)) }
      return state.waiters
    }
    for (_, waiter) in waiters { waiter.receive(.deliver) }
  }

  private func finish(_ result: Result<Output, CacheError>) {
    let waiters = state.withLock { state in
      defer {
        state.isClosed = true
        state.waiters = []
      }
      return state.waiters
    }
    coalescer.forget(self, coalescingID)
    let isShareable = (try? result.get().isShareable) ?? true
    for (index, (_, waiter)) in waiters.enumerated() { waiter.receive(index == 0 || isShareable ? .end(result) : .loadAlone) }
    coalescer.remove(self)
    let closers = state.withLock { state in
      state.isOver = true
      defer { state.closers = [] }
      return state.closers
    }
    for closer in closers { closer.resume() }
  }
}

extension Task where Failure == Never {
  /// Raises the priority of the task, on systems that can raise it from outside the task.
  fileprivate func escalate(to level: LoadPriority.Level) {
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

/// A task as the waiter of a coalesced load. It pulls the events one by one. Other waiters receive callbacks.
struct WaitingTask<Output: Shareable>: Sendable {
  private enum Step: Sendable {
    case event(CoalescedLoadEvent<Output>)
    case end(Result<Output, CacheError>)

    static func merge(_ earlier: Self, _ later: Self) -> Self? {
      guard case .event(let earlier) = earlier, case .event(let later) = later else { return nil }
      return CoalescedLoadEvent.merge(earlier, later).map { .event($0) }
    }
  }

  /// The link between the waiter and the coalesced load.
  let link: LoadTask
  /// The waiter that joins the coalesced load.
  let waiter: CoalescedLoad<Output>.Waiter
  private let channel: EventChannel<Step>

  init(_ priority: LoadPriority) {
    let channel = EventChannel<Step>(merging: Step.merge)
    self.channel = channel
    link = LoadTask(priority: priority)
    waiter = .init { message in
      switch message {
      case .post(let event): channel.send(.event(event))
      case .deliver: break
      case .end(let result): channel.finish(with: .end(result))
      // The waiter that waits for this task has the deadline.
      case .expired(let error): channel.finish(with: .end(.failure(error)))
      case .loadAlone: channel.finish()
      }
    }
  }

  /// Waits for the end of the coalesced load.
  ///
  /// - Parameter event: Called with each event. If it returns an output, the wait ends with that output, and the coalesced load
  ///   continues.
  /// - Returns: `nil` if the outcome is for another waiter alone.
  /// - Throws: A cancellation of the calling task, or the error of `event`. In both cases the task leaves the coalesced load.
  func outcome(
    _ event: (CoalescedLoadEvent<Output>) async throws(CacheError) -> Output?
  ) async throws(CacheError) -> Result<Output, CacheError>? {
    channel.onAbandon { [link] in link.cancel() }
    do throws(CacheError) {
      while let step = try await channel.next() {
        switch step {
        case .event(let happened):
          guard let enough = try await event(happened) else { continue }
          link.finish()
          return .success(enough)
        case .end(let result): return result
        }
      }
      return nil
    } catch {
      link.cancel()
      throw error
    }
  }
}

/// The priorities of queued loads, by the resource that they will load. A priority rises when another load requests the same
/// resource.
final class QueuedPriorities: Sendable {
  private let queued = Lock<[CoalescingKey: [LoadPriority]]>([:])

  func add(_ priority: LoadPriority, for key: CoalescingKey) {
    queued.withLock { $0[key, default: []].append(priority) }
  }

  func remove(_ priority: LoadPriority, for key: CoalescingKey) {
    queued.withLock { queued in
      queued[key]?.removeAll { $0 === priority }
      if queued[key]?.isEmpty == true { queued[key] = nil }
    }
  }

  /// Raises the queued loads of the resource that `load` requests to `level`.
  func raise(_ load: @autoclosure () -> ResolvedRequest, to level: LoadPriority.Level) {
    // Usually no load is queued, and the key is not needed.
    guard !queued.withLock({ $0.isEmpty }) else { return }
    let key = load().resourceKey
    for priority in queued.withLock({ $0[key] ?? [] }) { priority.raise(to: level) }
  }
}
