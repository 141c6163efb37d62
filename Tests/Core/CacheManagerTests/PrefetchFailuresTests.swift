import CacheCore
import CacheManager
import CacheTesting
import Foundation
import Testing

@Suite("Failures of a long-lived prefetcher")
struct PrefetchFailuresTests {
  private let fixture: ManagerFixture
  private let urls: [URL]

  init() throws {
    fixture = try ManagerFixture { $0.policy = .cacheOnly }
    let some = try ManagerFixture()
    urls = try (0..<2_500).map { try some.url("/\($0)") }
  }

  @Test("the latest failures are listed in the order of the requests, and earlier ones are counted")
  func bounded() async {
    let prefetcher = fixture.manager.prefetcher()
    for url in urls {
      prefetcher.append([url])
      _ = await prefetcher.report()
    }

    let report = await prefetcher.report()

    #expect(report.failed.map(\.url) == Array(urls.suffix(PrefetchReport.listedFailures)))
    #expect(report.failed.allSatisfy { $0.error.code == .notCached })
    #expect(report.unlistedFailures == 1_500 && prefetcher.progress.failed == 2_500)
  }

  @Test("all failures of one call are listed")
  func oneCall() async {
    let report = await fixture.manager.prefetch(urls)

    #expect(report.failed.map(\.url) == urls && report.unlistedFailures == 0)
  }
}
