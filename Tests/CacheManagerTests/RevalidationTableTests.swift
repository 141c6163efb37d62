import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import CacheManager

@Suite("The table of running revalidations")
struct RevalidationsTests {
  @Test("closing waits for a revalidation without running code, even if its own task is cancelled")
  func closing() async throws {
    let fixture = try ManagerFixture()
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    let subject = RevalidationTable.Subject(TieredCache(load, resource: load.settings.resource))
    let (revalidations, executor) = (RevalidationTable(), SteppedExecutor())
    let isClosed = Lock(false)
    #expect(revalidations.enter(subject) == nil)

    let closing = Task(executorPreference: executor) {
      await revalidations.close()
      isClosed.withLock { $0 = true }
    }
    closing.cancel()
    executor.run()
    #expect(executor.jobs == 0 && !isClosed.withLock { $0 })

    revalidations.leave(subject)
    executor.run()
    #expect(isClosed.withLock { $0 })
  }
}

/// An executor that holds jobs until a test runs them.
private final class SteppedExecutor: TaskExecutor {
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
