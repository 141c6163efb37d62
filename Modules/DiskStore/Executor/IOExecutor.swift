internal import CacheCore
internal import Dispatch

/// Runs blocking calls beside the cooperative pool, in a bounded number of threads: some look, as many store, and one does the
/// upkeep of the whole folder.
///
/// Work on one resource happens in the order in which it was asked for, one piece at a time, so what was stored is read by who
/// asks behind it. Apart from that nobody who looks waits for what is to be stored; and only so much of that is held at once,
/// since a disk that can't keep up would let it grow without end.
final class IOExecutor: Sendable {
  enum Lane {
    /// Looks at, or removes, what is stored of a resource.
    case entry(UInt64)
    /// Stores something of a resource, of so many bytes.
    case storing(UInt64, bytes: Int)
    /// Looks at what nobody changes, in no order.
    case unordered
    /// The folder as a whole.
    case upkeep
  }

  private let looking, storing: [DispatchQueue]
  private let upkeep = DispatchQueue(label: "etagere.disk.upkeep", qos: .utility)
  private let state: Lock<IOState>
  private let path: String

  /// - Parameters:
  ///   - width: how many look at once, and how many store.
  ///   - bounds: what may wait to be stored.
  ///   - path: what errors name.
  init(width: Int, bounds: IOState.Bounds, path: String) {
    func pool(_ name: String) -> [DispatchQueue] {
      (0..<width).map { DispatchQueue(label: "etagere.disk.\(name).\($0)", qos: .userInitiated) }
    }
    looking = pool("look")
    storing = pool("store")
    state = Lock(IOState(width: width, bounds: bounds))
    self.path = path
  }

  /// Runs `work` in a lane. Goes on when the task is cancelled: no half states.
  ///
  /// - Throws: ``CacheError/Code/closed`` after ``close()``; ``CacheError/Code/overloaded``, at once, when too much waits to be
  ///   stored already; what the work throws.
  func run<Value: Sendable>(
    _ lane: Lane, _ work: @escaping @Sendable () throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    // Resumed exactly once, by the work or by who refuses it.
    let result: Result<Value, CacheError> = await withCheckedContinuation { continuation in
      let refusal = submit(lane, whenClosed: false) {
        let result = Result(catching: work)
        return { continuation.resume(returning: result) }
      }
      if let refusal { continuation.resume(returning: .failure(error(refusal))) }
    }
    #if TSAN
    // The sanitizer does not see the hand-over where a continuation is resumed before it is awaited. The lock, which was taken
    // behind the work, it sees.
    state.withLock { _ in }
    #endif
    return try result.get()
  }

  /// Starts `work`, which nobody waits for but ``close()``.
  ///
  /// - Parameter whenClosed: also after ``close()``: for clearing away what is not needed any more.
  func start(_ lane: Lane, whenClosed: Bool = false, _ work: @escaping @Sendable () -> Void) {
    _ = submit(lane, whenClosed: whenClosed) {
      work()
      return {}
    }
  }

  /// Does `work` when it is a resource's turn, in the caller's thread, which waits for that. For the upkeep's own lane alone,
  /// which no other lane ever waits for.
  func wait<Value>(_ lane: Lane, _ work: () -> Value) -> Value {
    guard case .entry(let resource) = lane else { return work() }
    state.withLock { $0.reserve(resource) }?.wait()
    defer { carryOut(state.withLock { $0.release(resource) }) }
    return work()
  }

  /// Does `work` in the caller's thread if nothing else of the resource is under way or waits; nil: something is.
  func inTurn<Value>(_ resource: UInt64, _ work: () -> Value) -> Value? {
    guard state.withLock({ $0.reserveIfFree(resource) }) else { return nil }
    defer { carryOut(state.withLock { $0.release(resource) }) }
    return work()
  }

  /// Whether nothing of a resource is under way or waits, so that who looks without a turn sees all that was asked for before.
  /// Not so when closed.
  func isIdle(_ resource: UInt64) -> Bool { state.withLock { $0.isIdle(resource) } }

  /// Refuses new work and returns when all that was accepted is done.
  func close() async {
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { $0.close(continuation) }
      if isIdle { continuation.resume() }
    }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// What waits to be stored, or is being stored.
  var pendingStores: Int { state.withLock { $0.stores } }

  /// Whether nothing more may be stored until something has been.
  var isFull: Bool { state.withLock { !$0.hasRoom(for: 0) } }

  func error(_ refusal: IOState.Refusal) -> CacheError {
    switch refusal {
    case .closed: CacheError(.closed, reason: "the store is closed", path: path)
    case .overloaded: CacheError(.overloaded, reason: "too much waits to be stored already", path: path)
    }
  }

  // MARK: Working

  /// - Parameter work: returns what tells of its end, once it is off the books.
  private func submit(
    _ lane: Lane, whenClosed: Bool, _ work: @escaping @Sendable () -> @Sendable () -> Void
  ) -> IOState.Refusal? {
    let job = IOJob(lane, work)
    switch state.withLock({ $0.enter(job, whenClosed: whenClosed) }) {
    case .success(let wake):
      if case .upkeep = lane { upkeep.async { [self] in doUpkeep(job) } }
      if let wake { start(wake) }
      return nil
    case .failure(let refusal): return refusal
    }
  }

  private func doUpkeep(_ job: IOJob) {
    let tell = job.work()
    let step = state.withLock { $0.finish(job) }
    tell()
    carryOut(step)
  }

  private func start(_ worker: WorkerPool.Worker) {
    let queues = worker.kind == .looking ? looking : storing
    queues[worker.number].async { [self] in work(worker) }
  }

  /// What a worker does until there is nothing more to do.
  private func work(_ worker: WorkerPool.Worker) {
    var next = state.withLock { $0.next(for: worker) }
    while let job = next {
      let tell = job.work()
      let step = state.withLock { state in
        let step = state.finish(job)
        next = state.next(for: worker)
        return step
      }
      tell()
      carryOut(step)
    }
  }

  private func carryOut(_ step: IOState.Step) {
    if let wake = step.wake { start(wake) }
    step.turn?.signal()
    for closer in step.closers { closer.resume() }
  }
}
