public import Dispatch

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A task executor for CPU-bound work, such as decoding images.
///
/// Its threads are separate from the cooperative pool, so long computations do not delay tasks that wait for the network or the
/// disk. Jobs start in the order in which they arrive.
///
/// ```swift
/// configuration.executor = ProcessingExecutor()
/// options.executor = ProcessingExecutor(queue: DispatchQueue(label: "thumbnails", qos: .utility))
/// ```
public final class ProcessingExecutor: TaskExecutor, CheckedComponent {
  private struct State {
    var waiting = WorkQueue<UnownedJob>()
    var running = 0
  }

  /// The maximum number of jobs that run at the same time.
  public let width: Int
  /// The queue of the caller, or `nil` if each worker has a queue of its own.
  private let queue: DispatchQueue?
  private let state = Lock(State())
  package let validity: Result<Void, CacheError>

  /// Creates an executor with its own threads.
  ///
  /// - Parameter width: The maximum number of jobs at the same time, at least 1, or `nil` for the number of cores. With a lower
  ///   number, loads fail with ``CacheError/Code/invalidConfiguration``.
  public init(width: Int? = nil) {
    self.width = max(width ?? ProcessInfo.processInfo.activeProcessorCount, 1)
    validity = Result { () throws(CacheError) in try CacheError.require("width", width, in: 1...) }
    queue = nil
  }

  /// Creates an executor on a dispatch queue. A concurrent queue itself limits the number of jobs that run at the same time.
  public init(queue: DispatchQueue) {
    self.queue = queue
    width = .max
    validity = .success(())
  }

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    // The runtime does not retain the executor for this call. Once the job is in the queue, another worker can run it, and the
    // task that ends with it can release the last reference.
    let retained = Unmanaged.passRetained(self)
    let needsThread = state.withLock { state in
      state.waiting.append(job)
      guard state.running < width else { return false }
      state.running += 1
      return true
    }
    guard needsThread else { return retained.release() }
    (queue ?? Self.workerQueue()).async { retained.takeRetainedValue().work() }
  }

  /// Returns the queue of one worker. It is serial, because Dispatch has a thread for each serial queue that has work. On Linux,
  /// the concurrent queues and the cooperative pool share as many threads as there are cores. Computations would delay all tasks.
  ///
  /// Callers wait for the results. With `.utility`, Dispatch on Linux raises the nice value of the threads, and of those that
  /// libvips starts from them. On a busy machine they would get little processor time.
  private static func workerQueue() -> DispatchQueue { DispatchQueue(label: "Etagere.ProcessingExecutor", qos: .default) }

  /// Runs waiting jobs until none is left.
  private func work() {
    while let job = state.withLock({ state in
      let job = state.waiting.popFirst()
      if job == nil { state.running -= 1 }
      return job
    }) {
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}

/// The queue on which completion handlers and progress handlers are called.
public enum CallbackQueue: Sendable {
  /// The main queue, asynchronously.
  case mainAsync
  /// The main queue. The call is immediate if the caller is already on that queue, and asynchronous otherwise.
  case mainCurrentOrAsync
  /// No queue: immediately, on the thread that completed the work.
  case immediate
  /// The given queue, asynchronously.
  case dispatch(DispatchQueue)

  /// The default queue: ``mainCurrentOrAsync`` on Apple platforms, ``immediate`` elsewhere, because servers usually run no main
  /// queue.
  public static var platformDefault: CallbackQueue {
    #if canImport(Darwin)
    .mainCurrentOrAsync
    #else
    .immediate
    #endif
  }

  /// Runs `work` on the queue.
  public func execute(_ work: @escaping @Sendable () -> Void) {
    switch self {
    case .mainAsync: DispatchQueue.main.async(execute: work)
    case .mainCurrentOrAsync:
      if Self.isMain { work() } else { DispatchQueue.main.async(execute: work) }
    case .immediate: work()
    case .dispatch(let queue): queue.async(execute: work)
    }
  }

  /// A key that marks the main queue. Unlike `Thread.isMainThread` it needs no Foundation. It is also correct on Linux, where
  /// another thread may serve the main queue.
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  private static var isMain: Bool { DispatchQueue.getSpecific(key: mark) == true }
}
