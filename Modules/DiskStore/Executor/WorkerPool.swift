/// The threads that do one kind of work, and what is there to do for them.
struct WorkerPool {
  enum Kind: Sendable { case looking, storing }

  struct Worker: Sendable {
    let kind: Kind
    let number: Int
  }

  private let kind: Kind
  private var ready = WorkQueue<IOJob>()
  /// The one that rested last comes last, and is asked first.
  private var resting: [Int]

  init(_ kind: Kind, width: Int) {
    self.kind = kind
    resting = Array((0..<width).reversed())
  }

  /// Takes work in.
  ///
  /// - Returns: who is to begin.
  mutating func add(_ job: IOJob) -> Worker? {
    ready.append(job)
    return resting.popLast().map { Worker(kind: kind, number: $0) }
  }

  /// The next piece of work, the oldest; nil: the worker rests now.
  mutating func next(for worker: Worker) -> IOJob? {
    guard let job = ready.popFirst() else {
      resting.append(worker.number)
      return nil
    }
    return job
  }
}
