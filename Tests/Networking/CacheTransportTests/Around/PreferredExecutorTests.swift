import CacheCore
import CacheTesting
import CacheTransport
import Testing

/// An engine with its own executor, which no test uses.
private final class ExecutorDownloader: Downloader {
  private final class UnusedExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) { Issue.record("a job ran on the executor") }
  }

  let id = ComponentID.unique(ExecutorDownloader.self)
  let preferredExecutor: (any TaskExecutor)? = UnusedExecutor()

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse { throw .cancelled }
}

@Suite("Preferred executors of stacks")
struct PreferredExecutorTests {
  @Test("a wrapper passes on the executor of its engine")
  func handedOn() throws {
    let engine = ExecutorDownloader()
    let home = try #require(engine.preferredExecutor)
    let clock = ManualClock()
    let stack: [any Downloader] = [
      engine.retrying(.standard, clock: clock), engine.resuming(), engine.limitingConcurrency(TransferLimits(total: 1)),
      engine.rateLimited(perSecond: 1, burst: 1, clock: clock), engine.respectingRetryAfter(clock: clock),
      engine.intercepted(by: RequestInterceptor(willSend: { $0.attempt = 1 })),
      engine.limitingBodies(to: 1), engine.restrictingAddresses(to: .publicOnly),
    ]
    for downloader in stack {
      #expect(downloader.preferredExecutor.map { ObjectIdentifier($0) } == ObjectIdentifier(home), "\(type(of: downloader))")
    }
  }
}
