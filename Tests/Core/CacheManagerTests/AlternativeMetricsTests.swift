import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Metrics of alternative sources")
struct AlternativeMetricsTests {
  private let fixture: ManagerFixture
  private let mirror: URL
  private let second: URL

  init() throws {
    fixture = try ManagerFixture()
    mirror = try #require(URL(string: "https://mirror.example/image.png"))
    second = try #require(URL(string: "https://second.example/image.png"))
  }

  private var options: RequestOptions { RequestOptions { $0.alternatives = [.mirror(mirror), .mirror(second)] } }

  @Test("the metrics include the requests and the bytes of the sources that failed")
  func failedSources() async throws {
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 1_000)).cut(after: 10))
    fixture.network.respond(to: mirror, with: .failure(.connectionRefused))
    fixture.network.respond(to: second, with: .ok("second"))

    let resource = try await fixture.manager.load(fixture.url, options: options)

    #expect(resource.text == "second")
    #expect(resource.metrics.attempts == 3 && resource.metrics.bytesOnWire == 10 + 6)
    #expect(resource.metrics.bytesDecoded == 10 + 6)
  }

  @Test("the metrics include the time of a failed source, and the time to the head is that of the response")
  func time() async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.timedOut).after(.seconds(5)))
    fixture.network.respond(to: mirror, with: .ok("mirrored").after(.seconds(2)))

    async let load = fixture.manager.load(fixture.url, options: options)
    for seconds in [5, 2] {
      await fixture.clock.sleepers(1)
      fixture.clock.advance(by: .seconds(seconds))
    }

    let metrics = try await load.metrics
    #expect(metrics.total == .seconds(7) && metrics.timeToHead == .seconds(2) && metrics.attempts == 2)
  }

  @Test("the metrics include the redirects of a failed source, and every attempt that an engine made")
  func hops() async throws {
    let (first, last) = (fixture.url, mirror)
    let network = ClosureDownloader { seen throws(CacheError) in
      switch (seen.head.authority, seen.head.path) {
      case (first.host, "/image.png"):
        .streaming([], status: .found, fields: [.location: "/moved"], metrics: TransferMetrics(bytesOnWire: 3, attempts: 2))
      case (last.host, _): .streaming(["bytes"], metrics: TransferMetrics(bytesOnWire: 5))
      default: throw CacheError(.connectionLost, reason: "lost", attempt: 3)
      }
    }
    let fixture = try ManagerFixture { $0.downloader = network }

    let metrics = try await fixture.manager.load(fixture.url, options: options).metrics

    #expect(metrics.attempts == 2 + 3 + 1 && metrics.bytesOnWire == 3 + 5)
  }

  @Test("a refusal without a request is not an attempt")
  func restricted() async throws {
    fixture.network.respond(to: fixture.url, with: .failure(.networkRestricted))
    fixture.network.respond(to: mirror, with: .ok("small"))
    let options = RequestOptions { $0.alternatives = [.lowData(mirror)] }

    #expect(try await fixture.manager.load(fixture.url, options: options).metrics.attempts == 1)
  }

  @Test("a stored response that replaces all failed sources has the metrics of their requests")
  func standIn() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\""), .failure(.offline))
    fixture.network.respond(to: mirror, with: .ok(Data(count: 100)).cut(after: 20))
    fixture.network.respond(to: second, with: .failure(.offline))
    _ = try await fixture.manager.load(fixture.url)

    let stale = try await fixture.manager.load(fixture.url, options: options)

    #expect(stale.text == "old" && stale.validation == .failed)
    #expect(stale.metrics.attempts == 3 && stale.metrics.bytesOnWire == 20)
  }
}
