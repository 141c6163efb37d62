import CacheCore

/// An executor that holds jobs until a test runs them.
final class SteppedExecutor: TaskExecutor {
  private let waiting = Lock<[UnownedJob]>([])

  /// The number of jobs that can run now.
  var jobs: Int { waiting.withLock { $0.count } }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    waiting.withLock { $0.append(job) }
  }

  /// Runs the waiting jobs. Jobs that these add wait for the next call.
  func run() {
    let jobs = waiting.withLock { jobs in
      defer { jobs = [] }
      return jobs
    }
    for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
  }
}
