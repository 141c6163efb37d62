internal import CacheCore
internal import Dispatch

/// Runs blocking calls outside the cooperative pool, on a bounded number of threads: some read, the same number write, and one
/// does maintenance of the whole folder.
///
/// Operations on one resource run one at a time in the order of their calls, so a read after a store sees the stored entry.
/// Otherwise reads do not wait for writes. The number and size of pending writes is bounded, because a slow disk would let them
/// accumulate.
final class IOExecutor: Sendable {
  enum Lane {
    /// Reads or removes entries of a resource.
    case entry(UInt64)
    /// Writes this many bytes for a resource.
    case storing(UInt64, bytes: Int)
    /// Reads data that does not change, or handles many entries, each in its resource's turn (``inTurn(_:_:)``).
    case unordered
    /// Maintains the whole folder.
    case maintenance
  }

  private let looking, storing: [DispatchQueue]
  private let maintenance = DispatchQueue(label: "etagere.disk.maintenance", qos: .utility)
  private let state: Lock<IOState>
  private let path: String
  /// The gate that every job passes, or `nil` on a system that suspends no process.
  private let gate: SuspensionGate?

  /// - Parameters:
  ///   - width: The number of reading threads, and of writing threads.
  ///   - bounds: The limits for pending writes.
  ///   - path: The path that errors state.
  ///   - gate: The gate that every job passes, if any.
  init(width: Int, bounds: IOState.Bounds, path: String, gate: SuspensionGate? = nil) {
    func pool(_ name: String) -> [DispatchQueue] {
      (0..<width).map { DispatchQueue(label: "etagere.disk.\(name).\($0)", qos: .userInitiated) }
    }
    looking = pool("look")
    storing = pool("store")
    state = Lock(IOState(width: width, bounds: bounds))
    self.path = path
    self.gate = gate
  }

  /// Runs `work` in a lane. Cancelling the task does not stop the work, so nothing is left half done.
  ///
  /// - Throws: ``CacheError/Code/closed`` after ``close()``, ``CacheError/Code/overloaded`` immediately if too many writes are
  ///   pending, and the errors of `work`.
  func run<Value: Sendable>(
    _ lane: Lane, _ work: @escaping @Sendable () throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    // Resumed exactly once, either by the work or by the refusal.
    let result: Result<Value, CacheError> = await withResumption { continuation in
      let refusal = submit(lane, whenClosed: false) {
        let result = Result(catching: work)
        return { continuation.resume(returning: result) }
      }
      if let refusal { continuation.resume(returning: .failure(error(refusal))) }
    }
    return try result.get()
  }

  /// Starts `work` without waiting for it. Only ``close()`` waits for it.
  ///
  /// - Parameter whenClosed: Whether the work also runs after ``close()``, for cleanup.
  func start(_ lane: Lane, whenClosed: Bool = false, _ work: @escaping @Sendable () -> Void) {
    _ = submit(lane, whenClosed: whenClosed) {
      work()
      return {}
    }
  }

  /// Waits for a resource's turn on the caller's thread and runs `work`. Only the maintenance lane may call this, because no
  /// other lane waits for it.
  func wait<Value>(_ lane: Lane, _ work: () -> Value) -> Value {
    guard case .entry(let resource) = lane else { return work() }
    state.withLock { $0.reserve(resource) }?.wait()
    defer { carryOut(state.withLock { $0.release(resource) }) }
    return work()
  }

  /// Runs `work` on the caller's thread, or returns `nil` if another operation on the resource runs or waits.
  func inTurn<Value>(_ resource: UInt64, _ work: () -> Value) -> Value? {
    guard state.withLock({ $0.reserveIfFree(resource) }) else { return nil }
    defer { carryOut(state.withLock { $0.release(resource) }) }
    return work()
  }

  /// Takes the turns of all idle resources, and runs `work` with these on the caller's thread. A resource is idle if no
  /// operation on it runs or waits.
  func inFreeTurns<Value>(_ resources: Set<UInt64>, _ work: (Set<UInt64>) -> Value) -> Value {
    let free = state.withLock { state in resources.filter { state.reserveIfFree($0) } }
    defer {
      let steps = state.withLock { state in free.map { state.release($0) } }
      for step in steps { carryOut(step) }
    }
    return work(free)
  }

  /// Whether no operation on a resource runs or waits, so that a read without a turn sees all earlier ones. False when closed.
  func isIdle(_ resource: UInt64) -> Bool { state.withLock { $0.isIdle(resource) } }

  /// Refuses new work and returns when all accepted work is done.
  func close() async {
    await withResumption { continuation in
      let isIdle = state.withLock { $0.close(continuation) }
      if isIdle { continuation.resume() }
    }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// The number of writes that are waiting or in progress.
  var pendingStores: Int { state.withLock { $0.stores } }

  /// Whether further writes are refused until others have finished.
  var isFull: Bool { state.withLock { !$0.hasCapacity(for: 0) } }

  func error(_ refusal: IOState.Refusal) -> CacheError {
    switch refusal {
    case .closed: CacheError(.closed, reason: "the store is closed", path: path)
    case .overloaded: CacheError(.overloaded, reason: "too many stores are waiting", path: path)
    }
  }

  // MARK: Workers

  /// - Parameter work: Returns a closure that reports the result, called once the work is no longer counted.
  private func submit(
    _ lane: Lane, whenClosed: Bool, _ work: @escaping @Sendable () -> @Sendable () -> Void
  ) -> IOState.Refusal? {
    let job = IOJob(lane, work)
    switch state.withLock({ $0.enter(job, whenClosed: whenClosed) }) {
    case .success(let wake):
      if case .maintenance = lane { maintenance.async { [self] in runMaintenance(job) } }
      if let wake { start(wake) }
      return nil
    case .failure(let refusal): return refusal
    }
  }

  private func runMaintenance(_ job: IOJob) {
    let tell = gate.map { $0.pass(job.work) } ?? job.work()
    let step = state.withLock { $0.finish(job) }
    tell()
    carryOut(step)
  }

  private func start(_ worker: WorkerPool.Worker) {
    let queues = worker.kind == .looking ? looking : storing
    queues[worker.number].async { [self] in work(worker) }
  }

  /// Runs jobs until no more are ready.
  private func work(_ worker: WorkerPool.Worker) {
    var next = state.withLock { $0.next(for: worker) }
    var entry = next == nil ? nil : gate?.enter()
    defer { if let gate, let entry { gate.leave(entry) } }
    while let job = next {
      let tell = job.work()
      let step = state.withLock { state in
        let step = state.finish(job)
        next = state.next(for: worker)
        return step
      }
      tell()
      carryOut(step)
      // One permission for jobs that follow each other, so that the locks are not handed back in between.
      if next != nil, let gate, let last = entry { entry = gate.renew(last) }
    }
  }

  private func carryOut(_ step: IOState.Step) {
    if let wake = step.wake { start(wake) }
    step.turn?.signal()
    for closer in step.closers { closer.resume() }
  }
}

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
    var closers: [Resumption<Void>] = []
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
  private var closers: [Resumption<Void>] = []

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
  mutating func close(_ closer: Resumption<Void>) -> Bool {
    isClosed = true
    if pending == 0 { return true }
    closers.append(closer)
    return false
  }
}

/// A job in the executor.
struct IOJob: Sendable {
  /// The resource of the job, if its order matters.
  let resource: UInt64?
  /// The kind of worker that runs it, or `nil` for the maintenance thread.
  let kind: WorkerPool.Kind?
  /// The number of bytes to write.
  let bytes: Int
  /// Runs the job and returns a closure that reports its result.
  let work: @Sendable () -> @Sendable () -> Void

  init(_ lane: IOExecutor.Lane, _ work: @escaping @Sendable () -> @Sendable () -> Void) {
    self.work = work
    switch lane {
    case .entry(let resource): (self.resource, kind, bytes) = (resource, .looking, 0)
    case .storing(let resource, let bytes): (self.resource, kind, self.bytes) = (resource, .storing, bytes)
    case .unordered: (resource, kind, bytes) = (nil, .looking, 0)
    case .maintenance: (resource, kind, bytes) = (nil, nil, 0)
    }
  }
}

/// The threads for one kind of work, and the jobs that are ready for them.
struct WorkerPool {
  enum Kind: Sendable { case looking, storing }

  struct Worker: Sendable {
    let kind: Kind
    let number: Int
  }

  private let kind: Kind
  private var ready = WorkQueue<IOJob>()
  /// The idle workers. The one that became idle last is at the end and is woken first.
  private var resting: [Int]

  init(_ kind: Kind, width: Int) {
    self.kind = kind
    resting = Array((0..<width).reversed())
  }

  /// Accepts a job.
  ///
  /// - Returns: The worker to wake, if any.
  mutating func add(_ job: IOJob) -> Worker? {
    ready.append(job)
    return resting.popLast().map { Worker(kind: kind, number: $0) }
  }

  /// Returns the oldest ready job, or `nil` if the worker becomes idle.
  mutating func next(for worker: Worker) -> IOJob? {
    guard let job = ready.popFirst() else {
      resting.append(worker.number)
      return nil
    }
    return job
  }
}
