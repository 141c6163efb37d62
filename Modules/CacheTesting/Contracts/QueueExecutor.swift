internal import Dispatch

/// Runs tasks on a queue, and so on a thread, of its own: contention that the width of the cooperative pool does not bound.
final class QueueExecutor: TaskExecutor {
  private let queue: DispatchQueue

  init(_ name: String) { queue = DispatchQueue(label: name) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
