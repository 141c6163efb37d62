import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import Foundation
import HTTPTypes
import Testing

@Suite("The priority of a load")
struct PriorityTests {
  @Test("a visible load overtakes a hundred prefetches")
  func overtaking() async throws {
    let gate = Gate()
    let limited = Lock<LimitedDownloader?>(nil)
    let fixture = try ManagerFixture { configuration in
      let limit = configuration.downloader.map {
        LimitedDownloader($0, limits: TransferLimits(total: 1), clock: configuration.clock)
      }
      limited.withLock { $0 = limit }
      configuration.downloader = limit
      // There is room for all bodies, so the loads wait for a transfer and not for memory.
      configuration.memoryBudget = 1 << 30
    }
    let limit = try #require(limited.withLock { $0 })
    let urls = try (0..<100).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.serve(url) { _ in .ok("prefetched", cacheControl: "max-age=60").held(by: gate) } }
    fixture.network.respond(to: fixture.url, with: .ok("visible", cacheControl: "max-age=60"))
    let prefetcher = fixture.manager.prefetcher(concurrency: 100)
    prefetcher.append(urls)
    await gate.arrived()
    try await Polling.until { limit.waitingTransfers == 99 }

    let visible = Task { try await fixture.manager.load(fixture.url).text }
    try await Polling.until { limit.waitingTransfers == 100 }
    let joined = Task { try await fixture.manager.load(urls[90]).text }
    try await Polling.until { fixture.observer.events.contains { if case .joined = $0 { true } else { false } } }
    gate.open()

    #expect(try await visible.value == "visible")
    #expect(try await joined.value == "prefetched")
    #expect(await prefetcher.report().loaded == 100)
    // The next two requests, before 98 prefetches that were requested first.
    #expect(Set(fixture.network.requests.compactMap(\.path)[1...2]) == [fixture.url.path(), "/90"])
  }

  @Test("the priority of a load is that of its task", arguments: LoadPriority.Level.allCases)
  func task(_ level: LoadPriority.Level) async throws {
    let seen = Lock<TaskPriority?>(nil)
    let fixture = try ManagerFixture { configuration in
      configuration.downloader = ClosureDownloader { _ throws(CacheError) in
        seen.withLock { $0 = Task.currentPriority }
        return DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(Data("body".utf8)))
      }
    }
    // The result is not awaited through a task, because that would raise the priority.
    let isOver = Lock(false)
    fixture.manager.load(fixture.url, options: RequestOptions { $0.priority = level }) { _ in isOver.withLock { $0 = true } }
    try await Polling.until { isOver.withLock { $0 } }

    let expected: [LoadPriority.Level: TaskPriority] = [
      .veryLow: .background, .low: .utility, .normal: .medium, .high: .high, .veryHigh: .high,
    ]
    #expect(seen.withLock { $0 } == expected[level])
  }

  @Test("the task's priority is raised when a more urgent waiter joins")
  func escalation() async throws {
    let gate = Gate()
    let seen = Lock<[TaskPriority]>([])
    let fixture = try ManagerFixture { configuration in
      guard let network = configuration.downloader else { return }
      configuration.downloader = HookedPriority(network) { seen.withLock { $0.append(Task.currentPriority) } }
    }
    fixture.network.respond(to: fixture.url, with: .ok("body", cacheControl: "max-age=60").held(by: gate))
    let prefetcher = fixture.manager.prefetcher()
    prefetcher.append([fixture.url])
    await gate.arrived()

    async let visible = fixture.manager.load(fixture.url, options: RequestOptions { $0.priority = .high })
    try await Polling.until { fixture.observer.events.contains { if case .joined = $0 { true } else { false } } }
    gate.open()

    #expect(try await visible.text == "body")
    #expect(seen.withLock { $0 } == [.utility, .high])
  }
}

/// A downloader that reports the priority of the task before a download and after its head.
private struct HookedPriority: Downloader {
  let id = ComponentID.unique(HookedPriority.self)
  private let base: any Downloader
  private let tell: @Sendable () -> Void

  init(_ base: any Downloader, _ tell: @escaping @Sendable () -> Void) { (self.base, self.tell) = (base, tell) }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    tell()
    defer { tell() }
    return try await base.download(request)
  }
}
