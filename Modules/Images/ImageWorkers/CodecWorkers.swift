public import CacheCore

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

#if os(Linux)
internal import CEtagereConfinement
internal import Dispatch

/// A pool of worker processes that run image codecs, so that no image can end, stop or fill the process that serves it.
///
/// Each worker is a process of the same program. It runs one job at a time and has limits that the system enforces:
/// [Codecs in worker processes](doc:/ImageService/CodecWorkers) lists them. A worker that exceeds one is ended and replaced. Only
/// its job fails, with `CacheError.Code.codecCrashed`, `.codecTimedOut` or `.codecOutOfMemory`.
///
/// ```swift
/// ImageService.runIfWorker()  // the first line of main.swift: it does not return in a worker
/// var configuration = ImageService.Configuration()
/// configuration.workers = try CodecWorkers()
/// ```
public final class CodecWorkers: Sendable {
  private struct State {
    var idle: [WorkerProcess] = []
    /// The workers that have a job.
    var running: Set<Int32> = []
    /// The jobs that have been moved aside.
    var longJobs = 0
    var counters = Counters()
    var isClosed = false
  }

  private let configuration: Configuration
  /// The number of further jobs that may run.
  private let slots: DispatchSemaphore
  private let state = Lock(State())
  /// The queue on which workers end whose end has no more meaning. It can take long: a process releases its memory first.
  private let cleanup = DispatchQueue(label: "etagere.codec-workers")
  /// The confinement that the kernel has put in place.
  public let confinement: Confinement

  /// Starts the workers, and waits until the first one is ready.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if a setting is out of range, if this process is a worker itself, or if the
  ///   program does not run as a worker: its `main` must begin with `ImageService.runIfWorker()`.
  public init(_ configuration: Configuration = Configuration()) throws(CacheError) {
    try configuration.check()
    // A program that does not begin with `runIfWorker` would start itself again and again.
    guard !WorkerProgram.isWorker else { throw Self.notAWorker("the program has started workers in a worker") }
    self.configuration = configuration
    slots = DispatchSemaphore(value: configuration.count)
    // On a busy machine, a worker in the background may never become ready. That is no fault of the program.
    var first = try WorkerProcess.start(configuration, inBackground: false)
    do throws(WorkerFailure) {
      confinement = try first.awaitReady(until: .now + configuration.startTimeout)
      if isInBackground { first.runInBackground() }
    } catch {
      let death = first.end()
      let hint = death.message.isEmpty ? "; 'main' must begin with 'ImageService.runIfWorker()'" : ""
      throw Self.notAWorker(error.reason(death) + hint)
    }
    // Without Landlock, a worker could read the environment of this process.
    if confinement.landlock == 0 { etagere_hide_process() }
    state.withLock {
      $0.counters.starts = 1
      $0.idle = [first]
    }
    // The service need not wait for the others.
    cleanup.async { [weak self] in
      for _ in 1..<configuration.count { self?.replace() }
    }
  }

  private static func notAWorker(_ reason: String) -> CacheError {
    CacheError(.invalidConfiguration, reason: "a worker process does not start: \(reason)")
  }

  deinit { close() }

  /// Ends all workers. Running and later jobs fail with `CacheError.Code.closed`.
  public func close() {
    let idle = state.withLock { state in
      state.isClosed = true
      // A process that is listed has not been waited for, so the number is still its own.
      for id in state.running { _ = etagere_worker_kill(id) }
      defer { state.idle = [] }
      return state.idle
    }
    for var worker in idle { _ = worker.end() }
  }

  /// The numbers of workers and of jobs since the pool was created.
  public var counters: Counters { state.withLock { $0.counters } }

  /// The maximum number of jobs at the same time: those of the workers, and those that take long beside them.
  public var maximumJobs: Int { configuration.count + configuration.longJobs }

  // MARK: Jobs

  /// Runs a job in a worker, and blocks the thread until it ends. If the task is cancelled, the worker is ended soon after.
  ///
  /// - Parameters:
  ///   - source: The bytes for the job.
  ///   - deadline: The time at which the job is ended.
  /// - Throws: The error of the job, `CacheError.Code.codecCrashed`, `.codecTimedOut`, `.codecOutOfMemory`, `.timedOut` if no
  ///   worker was free until the deadline, `.cancelled` and `.closed`.
  package func run<Job: WorkerJob>(
    _ job: Job, on source: Data, until deadline: SuspendingClock.Instant
  ) throws(CacheError) -> (result: Job.Result, data: Data) {
    try takeSlot(until: deadline)
    var isAside = false
    defer { if isAside { state.withLock { $0.longJobs -= 1 } } else { slots.signal() } }
    // No worker is ended for a job that has too little time anyway.
    guard deadline - .now >= Self.leastTime(for: job) else { throw Self.late }
    var worker = try takeWorker()
    // A job that began late, or whose worker had no processor, fails for want of time, and not because of its image.
    var isLate = false
    var (times, limit) = (WorkerProcess.ProcessorTimes?.none, Duration.zero)
    let reply: WorkerProcess.Reply<Job>
    do throws(WorkerFailure) {
      try worker.prepare(until: deadline)
      var job = job
      let left = deadline - .now
      isLate = left < job.timeLimit / 2
      guard left >= Self.leastTime(for: job) else { throw .notReady }
      // The worker ends the work itself, if it can, because a new worker takes time to start.
      job.timeLimit = min(job.timeLimit, left - left / 20)
      (times, limit) = (isInBackground ? worker.processorTimes : nil, job.timeLimit)
      reply = try worker.run(job, on: source, until: deadline, patience: configuration.patience) {
        isAside = moveAside()
        return isAside
      }
    } catch {
      if case .deadline = error, isStarved(worker, since: times, for: limit) { isLate = true }
      throw counted(end(worker, after: error, isAside: isAside), isLate: isLate)
    }
    let isStarved = reply.isFailure && isStarved(worker, since: times, for: limit)
    putBack(worker, residentBytes: reply.residentBytes, isAside: isAside)
    do throws(CacheError) {
      return try reply.content()
    } catch {
      isLate = isLate || isStarved
      throw counted(error, isLate: isLate)
    }
  }

  private var isInBackground: Bool { configuration.priority == .background }

  /// Whether a worker in the background had no processor for most of its time. Other workers compete like any program.
  ///
  /// - Parameter times: The times at the start of the job, or `nil` for a worker of normal priority.
  private func isStarved(_ worker: WorkerProcess, since times: WorkerProcess.ProcessorTimes?, for limit: Duration) -> Bool {
    times.map { worker.processorTimes.isStarved(since: $0, for: limit) } ?? false
  }

  /// Ends a worker that did not complete its job, and returns the error of the job.
  private func end(_ worker: WorkerProcess, after failure: WorkerFailure, isAside: Bool) -> CacheError {
    var worker = worker
    var death = WorkerProcess.Death()
    // Before the process is waited for: its number may then be that of another one.
    let isClosed = state.withLock { state in
      state.running.remove(worker.id)
      return state.isClosed
    }
    if case .death = failure {
      death = worker.end()
      if !isAside { replace() }
    } else {
      worker.kill()
      cleanup.async { [self, worker] in
        var worker = worker
        _ = worker.end()
        if !isAside { replace() }
      }
    }
    return isClosed ? Self.closed : failure.error(death, configuration)
  }

  private func counted(_ error: CacheError, isLate: Bool) -> CacheError {
    if isLate, error.code == .codecTimedOut { return Self.late }
    state.withLock { $0.counters.count(error.code) }
    return error
  }

  /// Returns a worker to the pool after a job, or ends it after its last one.
  private func putBack(_ worker: WorkerProcess, residentBytes: Int, isAside: Bool) {
    let isSpent = worker.jobs >= configuration.jobsPerWorker || residentBytes > configuration.residentLimit
    let isKept = state.withLock { state in
      state.running.remove(worker.id)
      if isSpent { state.counters.recycled += 1 }
      // The low priority of a worker that was moved aside cannot be raised again, and another worker has its place.
      guard !isSpent, !isAside, !state.isClosed else { return false }
      state.idle.append(worker)
      return true
    }
    guard !isKept else { return }
    worker.kill()
    cleanup.async { [self, worker] in
      var worker = worker
      _ = worker.end()
      if !isAside { replace() }
    }
  }

  private static let closed = CacheError(.closed, reason: "the codec workers are closed")
  private static let late = CacheError(
    .timedOut, reason: "no codec worker was free, or got enough processor time, within the time limit")

  /// The time that a job needs to have left when it begins.
  private static func leastTime(for job: some WorkerJob) -> Duration { min(job.timeLimit / 4, .milliseconds(500)) }

  /// Lets another job run beside one that takes long. Returns whether there may be one more.
  private func moveAside() -> Bool {
    let isMoved = state.withLock { state in
      guard state.longJobs < configuration.longJobs else { return false }
      state.longJobs += 1
      state.counters.longJobs += 1
      return true
    }
    guard isMoved else { return false }
    replace()
    slots.signal()
    return true
  }

  private func takeSlot(until deadline: SuspendingClock.Instant) throws(CacheError) {
    while slots.wait(timeout: .now() + .milliseconds(20)) == .timedOut {
      if Task.isCancelled { throw .cancelled }
      if .now >= deadline { throw CacheError(.timedOut, reason: "no codec worker was free within the time limit") }
    }
  }

  /// Returns a worker that runs. One that was ended while it was idle, for example by the system, is replaced.
  private func takeWorker() throws(CacheError) -> WorkerProcess {
    while true {
      let idle = state.withLock { state in
        let worker = state.idle.popLast()
        if let worker { state.running.insert(worker.id) }
        return worker
      }
      var worker: WorkerProcess
      if let idle { worker = idle } else { worker = try WorkerProcess.start(configuration, inBackground: isInBackground) }
      let mayRun = state.withLock { state in
        if idle == nil { state.counters.starts += 1 }
        guard worker.isIdle, !state.isClosed else {
          state.running.remove(worker.id)
          return false
        }
        state.running.insert(worker.id)
        return true
      }
      if mayRun { return worker }
      _ = worker.end()
      if state.withLock({ $0.isClosed }) { throw Self.closed }
    }
  }

  /// Starts a worker in advance, so that the next job does not wait for it. A failure is that of the next job.
  private func replace() {
    guard state.withLock({ !$0.isClosed }), var worker = try? WorkerProcess.start(configuration, inBackground: isInBackground)
    else { return }
    let isKept = state.withLock { state in
      state.counters.starts += 1
      guard !state.isClosed else { return false }
      state.idle.append(worker)
      return true
    }
    if !isKept { _ = worker.end() }
  }
}
#else
/// A pool of worker processes that run image codecs. It needs Linux: apps run the system's codecs in their own process.
public final class CodecWorkers: Sendable {
  private static let unsupported = CacheError(.unsupported, reason: "codec workers need Linux")

  /// - Throws: `CacheError.Code.unsupported`.
  public init(_ configuration: Configuration = Configuration()) throws(CacheError) { throw Self.unsupported }

  /// No pool exists, so the other members have no meaning.
  public func close() {}
  /// Zeros.
  public var counters: Counters { Counters() }
  /// Zero.
  public var maximumJobs: Int { 0 }
  /// None.
  public var confinement: Confinement { Confinement(landlock: 0, filtersSystemCalls: false) }

  package func run<Job: WorkerJob>(
    _ job: Job, on source: Data, until deadline: SuspendingClock.Instant
  ) throws(CacheError) -> (result: Job.Result, data: Data) { throw Self.unsupported }
}
#endif

extension CodecWorkers {
  /// Whether the platform has worker processes.
  package static var isSupported: Bool {
    #if os(Linux)
    true
    #else
    false
    #endif
  }

  /// The priority of workers for the processors.
  public enum Priority: String, Sendable, CaseIterable {
    /// The priority of the process that starts them.
    case normal
    /// Workers run only while no other thread of the same control group wants a processor (`SCHED_IDLE`). Images then do not
    /// delay the responses of the service, and wait for as long as these alone occupy all processors.
    case background
  }

  /// The settings of a pool.
  public struct Configuration: Sendable {
    /// The number of workers, at least 1. Each runs one job at a time.
    public var count = HostResources.processors
    /// The priority of the workers.
    public var priority = Priority.normal
    /// The time after which a job is moved aside: its worker gets the lowest priority, and another worker takes its place. So
    /// images that take long do not hold up the others.
    public var patience: Duration = .seconds(1)
    /// The number of jobs that may be aside at the same time. Further ones keep their place.
    public var longJobs = HostResources.processors
    /// The memory that a worker may use for its jobs, in bytes, at least 16 MiB. The system refuses more.
    public var memoryLimit = HostResources.share(atMost: 1 << 30)
    /// The number of jobs after which a worker is replaced, at least 1.
    public var jobsPerWorker = 1_000
    /// The resident memory in bytes beyond which a worker is replaced after a job. Codecs retain memory.
    public var residentLimit = 192 << 20
    /// The time in which a worker must be ready.
    public var startTimeout: Duration = .seconds(20)
    /// The path of the program, or `nil` for the one of this process.
    public var program: String?

    /// Creates the default settings, and applies `change`.
    public init(_ change: (inout Configuration) -> Void = { _ in }) { change(&self) }

    func check() throws(CacheError) {
      try CacheError.require("count", count, in: 1...)
      try CacheError.require("patience", patience, in: .zero...)
      try CacheError.require("longJobs", longJobs, in: 0...)
      try CacheError.require("memoryLimit", memoryLimit, in: (16 << 20)...)
      try CacheError.require("jobsPerWorker", jobsPerWorker, in: 1...)
      try CacheError.require("residentLimit", residentLimit, in: 0...)
      try CacheError.require("startTimeout", positive: startTimeout)
    }
  }

  /// The numbers of workers and of jobs since a pool was created.
  public struct Counters: Hashable, Sendable {
    /// The workers that were started.
    public var starts = 0
    /// The workers that were replaced after their last job.
    public var recycled = 0
    /// The jobs that were moved aside.
    public var longJobs = 0
    /// The jobs whose worker crashed.
    public var crashes = 0
    /// The jobs that took too long.
    public var timeouts = 0
    /// The jobs that needed too much memory.
    public var outOfMemory = 0

    /// Creates counters.
    public init(
      starts: Int = 0, recycled: Int = 0, longJobs: Int = 0, crashes: Int = 0, timeouts: Int = 0, outOfMemory: Int = 0
    ) {
      (self.starts, self.recycled, self.longJobs) = (starts, recycled, longJobs)
      (self.crashes, self.timeouts, self.outOfMemory) = (crashes, timeouts, outOfMemory)
    }

    mutating func count(_ code: CacheError.Code) {
      switch code {
      case .codecCrashed: crashes += 1
      case .codecTimedOut: timeouts += 1
      case .codecOutOfMemory: outOfMemory += 1
      default: break
      }
    }
  }

  /// The parts of a worker's confinement that depend on the kernel. The other limits hold everywhere.
  public struct Confinement: Hashable, Codable, Sendable {
    /// The version of Landlock, which hides files and networks, or 0 on kernels without it. Linux 5.13 and later have it.
    public var landlock: Int
    /// Whether a filter refuses the system calls that no codec needs (seccomp).
    public var filtersSystemCalls: Bool
  }
}

extension CodecWorkers.Confinement: CustomStringConvertible {
  /// The parts in words, such as `Landlock 7, a filter of system calls`.
  public var description: String {
    let files = landlock > 0 ? "Landlock \(landlock)" : "no Landlock, so files are readable"
    return "\(files), \(filtersSystemCalls ? "a" : "no") filter of system calls"
  }
}

extension CacheError.Code {
  /// The codec of an image ended its process. Only images that a worker decodes can fail so; see ``CodecWorkers``.
  public static let codecCrashed = Self(rawValue: "codecCrashed")
  /// The codec of an image exceeded its time, and its process was ended.
  public static let codecTimedOut = Self(rawValue: "codecTimedOut")
  /// The codec of an image needed more memory than a worker may use.
  public static let codecOutOfMemory = Self(rawValue: "codecOutOfMemory")
}
