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
