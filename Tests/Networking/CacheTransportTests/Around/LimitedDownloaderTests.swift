import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheTransport

@Suite("Concurrency limits")
struct LimitedDownloaderTests {
  private let clock = ManualClock()
  private let network: ScriptedDownloader

  init() { network = ScriptedDownloader(clock: clock) }

  private func limited(_ limits: TransferLimits) -> LimitedDownloader {
    LimitedDownloader(network, limits: limits, clock: clock)
  }

  private func serve(_ text: String, _ response: ScriptedResponse) throws {
    network.serve(try TestRequest.url(text)) { _ in response }
  }

  @Test("a limit admits transfers up to its total, and the next one when a body has ended")
  func total() async throws {
    for path in ["a", "b", "c"] { try serve("https://e.com/\(path)", .ok("body of \(path)")) }
    let downloader = limited(TransferLimits(total: 2))
    let first = try await downloader.download(TestRequest.request("https://e.com/a"))
    let second = try await downloader.download(TestRequest.request("https://e.com/b"))
    let third = Task { try await downloader.download(TestRequest.request("https://e.com/c")) }
    try await Polling.until { downloader.waitingTransfers == 1 }
    #expect(downloader.activeTransfers == 2)
    #expect(network.requests.count == 2)

    _ = try await first.body.collect()
    #expect(try await third.value.body.collect() == Data("body of c".utf8))
    #expect(downloader.activeTransfers == 1)
    _ = try await second.body.collect()
    #expect(downloader.activeTransfers == 0)
  }

  enum End: CaseIterable { case read, failed, cancelled, dropped, noResponse }

  @Test("a slot is free after each kind of end", arguments: End.allCases)
  func ends(_ end: End) async throws {
    try serve(
      "https://e.com/a", end == .noResponse ? .failure(.connectionLost) : .ok("some text").cut(after: end == .failed ? 4 : 9))
    let downloader = limited(TransferLimits(total: 1))
    do {
      let response = try? await downloader.download(TestRequest.request("https://e.com/a"))
      #expect(downloader.activeTransfers == (end == .noResponse ? 0 : 1))
      switch end {
      case .read: _ = try await response?.body.collect()
      case .failed: #expect(await failure { _ = try await response?.body.collect() }?.code == .truncatedBody)
      case .cancelled: response?.body.source.cancel()
      case .dropped, .noResponse: break
      }
      if end != .dropped { #expect(downloader.activeTransfers == 0) }
    }
    #expect(downloader.activeTransfers == 0)
  }

  @Test("a body in memory occupies no slot")
  func atHand() async throws {
    let downloader = LimitedDownloader(
      ClosureDownloader { _ in Data("here".utf8) }, limits: TransferLimits(total: 1), clock: clock)
    let response = try await downloader.download(TestRequest.request("https://e.com/a"))
    #expect(downloader.activeTransfers == 0)
    #expect(try await response.body.collect() == Data("here".utf8))
  }

  @Test("a host limit does not affect other hosts, and host names ignore case")
  func hosts() async throws {
    for host in ["a.com", "b.com", "a.com:8443"] { try serve("https://\(host)/", .ok("x")) }
    let downloader = limited(TransferLimits(total: 5, perHost: 1))
    let first = try await downloader.download(TestRequest.request("https://a.com/"))
    let other = try await downloader.download(TestRequest.request("https://b.com/"))
    let port = try await downloader.download(TestRequest.request("https://a.com:8443/"))
    var loud = try TestRequest.request("https://a.com/")
    loud.head.authority = "A.COM"
    let waiting = Task { [loud] in try await downloader.download(loud) }
    try await Polling.until { downloader.waitingTransfers == 1 }
    first.body.source.cancel()
    _ = try? await waiting.value
    #expect(downloader.waitingTransfers == 0)
    _ = (other, port)
  }

  @Test("an urgent request goes first, also if its priority is raised while it waits")
  func priorities() async throws {
    for path in 0...3 { try serve("https://e.com/\(path)", .ok("x")) }
    let downloader = limited(TransferLimits(total: 1))
    let first = try await downloader.download(TestRequest.request("https://e.com/0"))
    let rising = LoadPriority(.low)
    var tasks: [Task<Void, any Error>] = []
    for (path, priority) in [(1, LoadPriority(.normal)), (2, LoadPriority(.high)), (3, rising)] {
      tasks.append(
        Task {
          _ = try await downloader.download(TestRequest.request("https://e.com/\(path)", priority: priority)).body.collect()
        })
      try await Polling.until { downloader.waitingTransfers == path }
    }
    rising.raise(to: .veryHigh)
    _ = try await first.body.collect()
    for task in tasks { try await task.value }
    #expect(network.requests.map(\.path) == ["/0", "/3", "/2", "/1"])
  }

  @Test("a priority has no observers left after many transfers, and still raises those that wait")
  func observersEnd() async throws {
    for path in 0...100 { try serve("https://e.com/\(path)", .ok("x")) }
    let downloader = limited(TransferLimits(total: 1))
    let first = try await downloader.download(TestRequest.request("https://e.com/0"))
    let shared = LoadPriority(.low)
    var tasks: [Task<Void, any Error>] = []
    for path in 1...100 {
      // The last one has its own priority, which is higher than that of the others before their raise.
      let priority = path == 100 ? LoadPriority(.normal) : shared
      tasks.append(
        Task {
          _ = try await downloader.download(TestRequest.request("https://e.com/\(path)", priority: priority)).body.collect()
        })
      try await Polling.until { downloader.waitingTransfers == path }
    }
    #expect(shared.observers == 99)
    for task in tasks[..<50] { task.cancel() }
    try await Polling.until { shared.observers == 49 }
    shared.raise(to: .high)

    _ = try await first.body.collect()
    for task in tasks { _ = await task.result }
    #expect(shared.observers == 0)
    let served = network.requests.map(\.path)
    // One slot in eight goes to the oldest waiter, and the last one is the youngest.
    #expect(served.count == 51 && served.last == "/100")
  }

  @Test("a request that is cancelled before or while it waits ends at once")
  func cancelled() async throws {
    try serve("https://e.com/a", .ok("x"))
    let downloader = limited(TransferLimits(total: 1))
    let first = try await downloader.download(TestRequest.request("https://e.com/a"))
    let waiting = Task { try await downloader.download(TestRequest.request("https://e.com/a")) }
    try await Polling.until { downloader.waitingTransfers == 1 }
    waiting.cancel()
    #expect(await failure { _ = try await waiting.value }?.isCancellation == true)
    #expect(downloader.waitingTransfers == 0)

    let late = Task {
      try await Polling.until { Task.isCancelled }
      return try await downloader.download(TestRequest.request("https://e.com/a"))
    }
    late.cancel()
    #expect(await failure { _ = try await late.value }?.isCancellation == true)
    #expect(downloader.activeTransfers == 1 && downloader.waitingTransfers == 0)
    #expect(network.requests.count == 1)
    _ = first
  }

  @Test("a request is refused with queueFull when the maximum number of requests wait")
  func full() async throws {
    try serve("https://e.com/a", .ok("x"))
    let downloader = limited(TransferLimits(total: 1, maximumWaiting: 0))
    let first = try await downloader.download(TestRequest.request("https://e.com/a"))
    #expect(await failure { _ = try await downloader.download(TestRequest.request("https://e.com/a")) }?.code == .queueFull)
    _ = try await first.body.collect()
    _ = try await downloader.download(TestRequest.request("https://e.com/a")).body.collect()
  }

  @Test("the wait is measured and counts towards the request's timeout")
  func waiting() async throws {
    let seen = Lock<[Duration?]>([])
    let engine = HandlerDownloader { request throws(CacheError) in
      seen.withLock { $0.append(request.timeout) }
      return DownloadResponse(
        head: HTTPResponse(status: .ok), body: ResourceBody(pulling: { nil }),
        metrics: { TransferMetrics(queued: .seconds(1), total: .seconds(4)) })
    }
    let downloader = LimitedDownloader(engine, limits: TransferLimits(total: 1), clock: clock)
    let first = try await downloader.download(TestRequest.request("https://e.com/a", timeout: .seconds(9)))
    #expect(first.metrics() == TransferMetrics(queued: .seconds(1), total: .seconds(4)))
    let second = Task { try await downloader.download(TestRequest.request("https://e.com/b", timeout: .seconds(10))) }
    try await Polling.until { downloader.waitingTransfers == 1 }
    clock.advance(by: .seconds(3))
    first.body.source.cancel()
    #expect(try await second.value.metrics() == TransferMetrics(queued: .seconds(4), total: .seconds(7)))
    #expect(seen.withLock { $0 } == [.seconds(9), .seconds(7)])
  }

  @Test("a wait ends at the request's timeout")
  func timeout() async throws {
    try serve("https://e.com/a", .ok("x"))
    let downloader = limited(TransferLimits(total: 1))
    let first = try await downloader.download(TestRequest.request("https://e.com/a"))
    let second = Task { try await downloader.download(TestRequest.request("https://e.com/a", timeout: .seconds(5))) }
    await clock.sleepers(1)
    try await Polling.until { downloader.waitingTransfers == 1 }
    clock.advance(by: .seconds(5))
    #expect(await failure { _ = try await second.value }?.code == .timedOut)
    #expect(downloader.waitingTransfers == 0)
    _ = first
  }

  @Test("downloaders with equal limits and engines are equal")
  func identity() {
    let limits = TransferLimits(total: 2, perHost: 1)
    #expect(network.limitingConcurrency(limits).id == network.limitingConcurrency(limits).id)
    #expect(network.limitingConcurrency(limits).id != network.limitingConcurrency(TransferLimits(total: 1, perHost: 2)).id)
    #expect(network.limitingConcurrency(limits).id != ScriptedDownloader().limitingConcurrency(limits).id)
    #expect(network.limitingConcurrency(limits).id != network.id)
    #expect(
      network.limitingConcurrency(limits).limitingBodies(to: 1).id != network.limitingBodies(to: 1).limitingConcurrency(limits).id
    )
  }

  @Test("10,000 requests that come and go lose no slot and no waiter", arguments: [1, 2] as [UInt64])
  func stress(_ seed: UInt64) async throws {
    let running = Lock((now: 0, most: 0))
    let engine = HandlerDownloader { request throws(CacheError) in
      running.withLock { running in
        running.now += 1
        running.most = max(running.most, running.now)
      }
      if request.head.path == "/fail" {
        running.withLock { $0.now -= 1 }
        throw CacheError(.connectionLost, reason: "lost")
      }
      let chunks = Lock(2)
      return DownloadResponse(
        head: HTTPResponse(status: .ok),
        body: ResourceBody(onCancel: { running.withLock { $0.now -= 1 } }) {
          await Task.yield()
          let left = chunks.withLock { left in
            left -= 1
            return left
          }
          if left < 0 { running.withLock { $0.now -= 1 } }
          return left < 0 ? nil : Data("chunk".utf8)
        })
    }
    let limits = TransferLimits(total: 8, perHost: 3, newestFirst: seed != 1)
    let downloader = LimitedDownloader(engine, limits: limits)
    var random = Seeded(seed)
    var tasks: [Task<String, Never>] = []
    for number in 0..<10_000 {
      let host = "h\(number % 7).com"
      let path = Int.random(in: 0..<10, using: &random) == 0 ? "/fail" : "/\(number)"
      let isDropped = Int.random(in: 0..<10, using: &random) == 0
      let priority = LoadPriority(LoadPriority.Level.allCases.randomElement(using: &random) ?? .normal)
      tasks.append(
        Task {
          do {
            let response = try await downloader.download(TestRequest.request("https://\(host)\(path)", priority: priority))
            if !isDropped { _ = try await response.body.collect() }
            return "done"
          } catch {
            return (error as? CacheError)?.code.rawValue ?? "\(error)"
          }
        })
      if Int.random(in: 0..<3, using: &random) == 0 {
        tasks[Int.random(in: 0...number, using: &random)].cancel()
      }
      if Int.random(in: 0..<5, using: &random) == 0 { priority.raise(to: .veryHigh) }
    }
    var outcomes: [String: Int] = [:]
    for task in tasks { outcomes[await task.value, default: 0] += 1 }
    #expect(outcomes.values.reduce(0, +) == 10_000)
    #expect(Set(outcomes.keys).isSubset(of: ["done", "cancelled", "connectionLost"]))
    #expect(downloader.activeTransfers == 0)
    #expect(downloader.waitingTransfers == 0)
    #expect(running.withLock { $0.now } == 0)
    #expect(running.withLock { $0.most } <= 8)
  }
}
