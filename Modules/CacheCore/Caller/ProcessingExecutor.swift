public import Dispatch

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A task executor for work that computes, such as decoding images. Its threads are not those of the cooperative pool, so that
/// long computations do not delay tasks that wait for the network or the disk. Jobs start in the order in which they arrive.
///
/// ```swift
/// configuration.executor = ProcessingExecutor()
/// options.executor = ProcessingExecutor(queue: DispatchQueue(label: "thumbnails", qos: .utility))
/// ```
public final class ProcessingExecutor: TaskExecutor {
  private struct State {
    var waiting: [UnownedJob] = []
    /// The position of the next job. Earlier ones have been taken.
    var next = 0
    var running = 0

    mutating func take() -> UnownedJob? {
      guard next < waiting.count else { return nil }
      defer {
        next += 1
        if next > 64, next * 2 > waiting.count {
          waiting.removeFirst(next)
          next = 0
        }
      }
      return waiting[next]
    }
  }

  /// The maximum number of jobs that run at the same time.
  public let width: Int
  private let queue: DispatchQueue
  private let state = Lock(State())

  /// Creates an executor with threads of its own.
  ///
  /// - Parameter width: The maximum number of jobs at the same time, at least 1, or `nil` for the number of cores.
  public init(width: Int? = nil) {
    self.width = max(width ?? ProcessInfo.processInfo.activeProcessorCount, 1)
    // Callers wait for the results. With `.utility`, Dispatch on Linux makes the threads, and those that libvips starts from
    // them, nice: on a busy machine they get little time.
    queue = DispatchQueue(label: "Etagere.ProcessingExecutor", qos: .default, attributes: .concurrent)
  }

  /// Creates an executor on a dispatch queue. A concurrent queue decides how many jobs run at the same time.
  public init(queue: DispatchQueue) {
    self.queue = queue
    width = .max
  }

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let needsThread = state.withLock { state in
      state.waiting.append(job)
      guard state.running < width else { return false }
      state.running += 1
      return true
    }
    if needsThread { queue.async { self.work() } }
  }

  /// Runs waiting jobs until there is none.
  private func work() {
    while let job = state.withLock({ state in
      let job = state.take()
      if job == nil { state.running -= 1 }
      return job
    }) {
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}
