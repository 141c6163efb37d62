public import Dispatch

/// A dispatch queue as a place where values are made, for ``RequestOptions/executor``.
///
/// ```swift
/// let pictures = ProcessingQueue(DispatchQueue(label: "pictures", qos: .utility))
/// let options = RequestOptions { $0.executor = pictures }
/// ```
public final class ProcessingQueue: TaskExecutor {
  /// Where the work runs: serial or concurrent.
  public let queue: DispatchQueue

  /// A place on a queue.
  public init(_ queue: DispatchQueue) { self.queue = queue }

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
