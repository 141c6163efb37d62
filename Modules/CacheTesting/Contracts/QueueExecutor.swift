internal import Dispatch

/// An executor that runs tasks on a separate dispatch queue, so that contention is not limited by the width of the
/// cooperative pool.
final class QueueExecutor: TaskExecutor {
  private let queue: DispatchQueue

  init(_ name: String) { queue = DispatchQueue(label: name) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
