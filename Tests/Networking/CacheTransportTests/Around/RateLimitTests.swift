import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheTransport

@Suite("Rate limits")
struct RateLimitTests {
  private let clock = ManualClock()

  /// Returns an engine that records the time and URL of each request.
  private func engine(_ log: Log) -> HandlerDownloader {
    let clock = clock
    return HandlerDownloader { request throws(CacheError) in
      log.entries.withLock { $0.append("\(request.head.path ?? "")@\(clock.uptime.milliseconds)") }
      return DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(.init()))
    }
  }

  private final class Log: Sendable {
    let entries = Lock<[String]>([])
    var all: [String] { entries.withLock { $0 } }
  }

  @Test(
    "a burst is admitted at once, and later requests at the rate",
    arguments: [
      (RateLimit(perSecond: 10, burst: 3), [0, 0, 0, 100, 200, 300]),
      (RateLimit(perSecond: 4), [0, 250, 500, 750, 1_000, 1_250]),
      (RateLimit(perSecond: 1, burst: 6), [0, 0, 0, 0, 0, 0]),
    ])
  func bucket(_ limit: RateLimit, _ expected: [Int]) {
    var bucket = TokenBucket(limit)
    var now = Duration.zero
    var times: [Int] = []
    for _ in expected {
      let delay = bucket.delay(at: now)
      if delay > .zero {
        let early = bucket.take(at: now + delay - .nanoseconds(1))
        #expect(!early)
      }
      now += delay
      #expect(bucket.take(at: now) == true)
      times.append(now.milliseconds)
    }
    #expect(times == expected)
  }

  @Test("a bucket fills up to its burst during a pause")
  func pause() {
    var bucket = TokenBucket(RateLimit(perSecond: 10, burst: 2))
    for second in [0, 1_000] {
      let now = Duration.seconds(second)
      #expect(bucket.take(at: now) == true)
      #expect(bucket.take(at: now) == true)
      let third = bucket.take(at: now)
      #expect(!third)
      #expect(bucket.delay(at: now) == .milliseconds(100))
    }
  }

  @Test("an invalid rate is replaced by the nearest valid one", arguments: [0, -1, .nan, -.infinity] as [Double])
  func nonsense(_ rate: Double) {
    #expect(RateLimit(perSecond: rate, burst: 0) == RateLimit(perSecond: 0.001, burst: 1))
    #expect(RateLimit(perSecond: .infinity).perSecond == 1e9)
    // An unlimited burst is a bucket that is never empty, and must not overflow.
    var bucket = TokenBucket(RateLimit(perSecond: rate, burst: .max))
    for _ in 0..<100 { #expect(bucket.take(at: .zero) == true) }
  }

  @Test("requests are sent in the order of arrival")
  func order() async throws {
    let log = Log()
    let downloader = RateLimitedDownloader(engine(log), limit: RateLimit(perSecond: 10), clock: clock)
    var tasks: [Task<TransferMetrics, any Error>] = []
    for number in 0..<5 {
      tasks.append(Task { try await downloader.download(TestRequest.request("https://e.com/\(number)")).metrics() })
      try await Polling.until { log.all.count == 1 && downloader.waitingRequests == number }
    }
    for number in 1..<5 {
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(100))
      try await Polling.until { log.all.count == number + 1 }
    }
    var metrics: [TransferMetrics] = []
    for task in tasks { metrics.append(try await task.value) }
    #expect(log.all == ["/0@0", "/1@100", "/2@200", "/3@300", "/4@400"])
    #expect(metrics.map(\.queued) == [nil, .milliseconds(100), .milliseconds(200), .milliseconds(300), .milliseconds(400)])
    #expect(downloader.waitingRequests == 0)
  }

  @Test("a request that is cancelled while it waits uses no token, so the last one of a long scroll is next")
  func scrolling() async throws {
    let log = Log()
    let downloader = RateLimitedDownloader(engine(log), limit: RateLimit(perSecond: 10), clock: clock)
    _ = try await downloader.download(TestRequest.request("https://e.com/first"))
    var passing: [Task<DownloadResponse, any Error>] = []
    for number in 0..<100 {
      passing.append(Task { try await downloader.download(TestRequest.request("https://e.com/\(number)")) })
      try await Polling.until { downloader.waitingRequests == number + 1 }
    }
    let last = Task { try await downloader.download(TestRequest.request("https://e.com/last")) }
    try await Polling.until { downloader.waitingRequests == 101 }
    for task in passing { task.cancel() }
    for task in passing { #expect(await failure { _ = try await task.value }?.isCancellation == true) }
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(100))
    _ = try await last.value
    #expect(log.all == ["/first@0", "/last@100"])
  }

  @Test("a wait ends at the request's timeout without a request")
  func timeout() async throws {
    let log = Log()
    let downloader = RateLimitedDownloader(engine(log), limit: RateLimit(perSecond: 0.1), clock: clock)
    _ = try await downloader.download(TestRequest.request("https://e.com/a"))
    let late = Task { try await downloader.download(TestRequest.request("https://e.com/b", timeout: .seconds(2))) }
    await clock.sleepers(2)
    clock.advance(by: .seconds(2))
    #expect(await failure { _ = try await late.value }?.code == .timedOut)
    #expect(log.all == ["/a@0"])
    #expect(downloader.waitingRequests == 0)
  }

  @Test("a request that need not wait sets no timer")
  func atOnce() async throws {
    let downloader = engine(Log()).rateLimited(perSecond: 1, burst: 5, clock: RefusingClock())
      .limitingConcurrency(TransferLimits(total: 1), clock: RefusingClock())
    _ = try await downloader.download(TestRequest.request("https://e.com/a", timeout: .seconds(2)))
  }

  /// A clock that does not permit sleeping.
  private struct RefusingClock: CacheClock {
    var now: Timestamp { Timestamp(seconds: 0) }
    var uptime: Duration { .zero }
    func sleep(for duration: Duration) async throws(CancellationError) { Issue.record("a task sleeps") }
  }

  @Test("a task that is already cancelled sends no request")
  func early() async throws {
    let log = Log()
    let downloader = RateLimitedDownloader(engine(log), limit: RateLimit(perSecond: 1, burst: 5), clock: clock)
    let task = Task {
      try await Polling.until { Task.isCancelled }
      return try await downloader.download(TestRequest.request("https://e.com/a"))
    }
    task.cancel()
    #expect(await failure { _ = try await task.value }?.isCancellation == true)
    #expect(log.all.isEmpty)
  }

  @Test("downloaders with equal limits and engines are equal")
  func identity() {
    let network = ScriptedDownloader()
    #expect(network.rateLimited(perSecond: 2).id == network.rateLimited(perSecond: 2).id)
    #expect(network.rateLimited(perSecond: 2).id != network.rateLimited(perSecond: 2, burst: 2).id)
  }
}

extension Duration {
  fileprivate var milliseconds: Int {
    Int(components.seconds) * 1_000 + Int(components.attoseconds / 1_000_000_000_000_000)
  }
}
