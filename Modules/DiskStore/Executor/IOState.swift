internal import CacheCore
internal import Dispatch

/// The state behind an ``IOExecutor``'s lock: the workers, the waiting jobs and the pending writes.
struct IOState {
  /// The limits for pending writes.
  struct Bounds: Sendable {
    var count: Int
    var bytes: Int
  }

  enum Refusal: Error { case closed, overloaded }

  /// The actions that follow the end of a job.
  struct Step {
    var wake: WorkerPool.Worker?
    var turn: DispatchSemaphore?
    var closers: [CheckedContinuation<Void, Never>] = []
  }

  private enum Waiting {
    case job(IOJob)
    case turn(DispatchSemaphore)
  }

  private let bounds: Bounds
  private var looking: WorkerPool
  private var storing: WorkerPool
  /// The jobs and turns that wait for the current operation on each resource, in order.
  private var rows: [UInt64: WorkQueue<Waiting>] = [:]
  private var pending = 0
  /// The number of writes that are waiting or in progress.
  private(set) var stores = 0
  private var storedBytes = 0
  private(set) var isClosed = false
  private var closers: [CheckedContinuation<Void, Never>] = []

  init(width: Int, bounds: Bounds) {
    self.bounds = bounds
    looking = WorkerPool(.looking, width: width)
    storing = WorkerPool(.storing, width: width)
  }

  /// Whether a write of this many bytes can be accepted. A single write of any size can.
  func hasCapacity(for bytes: Int) -> Bool {
    stores == 0 || stores < bounds.count && storedBytes < bounds.bytes && bytes <= bounds.bytes - storedBytes
  }

  /// Accepts a job.
  ///
  /// - Returns: The worker to wake, if any.
  mutating func enter(_ job: IOJob, whenClosed: Bool) -> Result<WorkerPool.Worker?, Refusal> {
    if isClosed && !whenClosed { return .failure(.closed) }
    if job.kind == .storing {
      guard hasCapacity(for: job.bytes) else { return .failure(.overloaded) }
      stores += 1
      storedBytes += job.bytes
    }
    pending += 1
    guard let resource = job.resource else { return .success(assign(job)) }
    guard rows[resource] == nil else {
      rows[resource]?.append(.job(job))
      return .success(nil)
    }
    rows[resource] = WorkQueue()
    return .success(assign(job))
  }

  private mutating func assign(_ job: IOJob) -> WorkerPool.Worker? {
    switch job.kind {
    case .looking?: looking.add(job)
    case .storing?: storing.add(job)
    case nil: nil
    }
  }

  mutating func next(for worker: WorkerPool.Worker) -> IOJob? {
    switch worker.kind {
    case .looking: looking.next(for: worker)
    case .storing: storing.next(for: worker)
    }
  }

  mutating func finish(_ job: IOJob) -> Step {
    if job.kind == .storing {
      stores -= 1
      storedBytes -= job.bytes
    }
    pending -= 1
    var step = job.resource.map { release($0) } ?? Step()
    if pending == 0 { swap(&step.closers, &closers) }
    return step
  }

  /// Whether no operation on a resource runs or waits.
  func isIdle(_ resource: UInt64) -> Bool { !isClosed && rows[resource] == nil }

  /// Takes a resource's turn if it is free.
  mutating func reserveIfFree(_ resource: UInt64) -> Bool {
    guard rows[resource] == nil else { return false }
    rows[resource] = WorkQueue()
    return true
  }

  /// Takes a resource's turn. If it is not free, returns a semaphore that signals when it is.
  mutating func reserve(_ resource: UInt64) -> DispatchSemaphore? {
    guard rows[resource] != nil else {
      rows[resource] = WorkQueue()
      return nil
    }
    let turn = DispatchSemaphore(value: 0)
    rows[resource]?.append(.turn(turn))
    return turn
  }

  /// Passes a resource's turn to the next in its queue.
  mutating func release(_ resource: UInt64) -> Step {
    guard let first = rows[resource]?.popFirst() else {
      rows[resource] = nil
      return Step()
    }
    switch first {
    case .job(let job): return Step(wake: assign(job))
    case .turn(let turn): return Step(turn: turn)
    }
  }

  /// - Returns: Whether no work is in progress.
  mutating func close(_ closer: CheckedContinuation<Void, Never>) -> Bool {
    isClosed = true
    if pending == 0 { return true }
    closers.append(closer)
    return false
  }
}
