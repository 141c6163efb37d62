internal import CacheCore
internal import Dispatch

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A place for work that computes: as many threads as there are cores, apart from the cooperative pool, so that a hundred
/// pictures that are decoded take no thread from what waits for the network or the disk. In the order in which the work comes.
///
/// ```swift
/// configuration.executor = DecodingExecutor()
/// ```
public final class DecodingExecutor: TaskExecutor {
  private struct State {
    var waiting: [UnownedJob] = []
    /// Where the next one stands: those before it are gone.
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

  /// How many pieces of work run at the same time.
  public let width: Int
  // Somebody waits for these pictures. With `.utility` Linux's Dispatch makes the threads, and libvips' own that come from them,
  // nice: on a busy machine they get little.
  private let queue = DispatchQueue(label: "Etagere.DecodingExecutor", qos: .default, attributes: .concurrent)
  private let state = Lock(State())

  /// A place for `width` pieces of work at the same time; nil: as many as there are cores.
  public init(width: Int? = nil) { self.width = max(width ?? ProcessInfo.processInfo.activeProcessorCount, 1) }

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

  /// One thread's work: whatever waits, until nothing does.
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
