import CacheCore
import CacheManager
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import Testing

@Suite("Metrics")
struct MetricsTests {
  @Test("the metrics of a redirect chain are sums, with the head, protocol and connection of the last response")
  func chain() async throws {
    let network = ClosureDownloader { seen throws(CacheError) in
      seen.head.path == "/last"
        ? .streaming(
          ["bytes"],
          metrics: TransferMetrics(
            queued: .milliseconds(1), connect: .milliseconds(2), timeToHead: .milliseconds(30), total: .milliseconds(40),
            bytesOnWire: 4, bytesDecoded: 5, protocolName: "h2", isReusedConnection: false, attempts: 3))
        : .streaming(
          [], status: .found, fields: [.location: "/last"],
          metrics: TransferMetrics(
            queued: .milliseconds(10), nameLookup: .milliseconds(3), timeToHead: .milliseconds(300),
            total: .milliseconds(400), bytesOnWire: 7, protocolName: "http/1.1", isReusedConnection: true))
    }
    let fixture = try ManagerFixture { $0.downloader = network }

    let resource = try await fixture.manager.load(fixture.url)

    let expected = TransferMetrics(
      queued: .milliseconds(11), nameLookup: .milliseconds(3), connect: .milliseconds(2), timeToHead: .milliseconds(30),
      total: .milliseconds(440), bytesOnWire: 11, bytesDecoded: 5, protocolName: "h2", isReusedConnection: false,
      redirects: 1, attempts: 4)
    #expect(resource.metrics == expected && resource.bytesOnWire == 11)
  }

  @Test("the manager's clock measures the durations that the engine does not report")
  func ownClock() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes").after(.seconds(2)).bodyHeld(by: gate))

    async let load = fixture.manager.load(fixture.url)
    await fixture.clock.sleepers(1)
    fixture.clock.advance(by: .seconds(2))
    await gate.arrived()
    fixture.clock.advance(by: .seconds(1))
    gate.open()

    let resource = try await load
    #expect(resource.metrics.timeToHead == .seconds(2) && resource.metrics.total == .seconds(3))
    #expect(resource.duration == .seconds(3))
    #expect(resource.metrics.attempts == 1 && resource.metrics.bytesOnWire == 5)
    let reported = fixture.observer.events.compactMap { event in
      if case .transferEnded(_, let metrics, _, _) = event { metrics } else { nil }
    }
    #expect(reported == [resource.metrics])
  }

  @Test("the metrics of a hit are empty, and those of a 304 have one request and no body")
  func hits() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60"), .notModified())
    _ = try await fixture.manager.load(fixture.url)

    let hit = try await fixture.manager.load(fixture.url)
    let confirmed = try await fixture.manager.load(fixture.url, options: .policy(.revalidate()))

    #expect(hit.metrics == TransferMetrics(attempts: 0))
    #expect(confirmed.metrics.attempts == 1 && confirmed.metrics.bytesOnWire == 0 && confirmed.source == .revalidated)
  }

  @Test("the metrics are complete when the body has ended, and not with its head")
  func completeness() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 10_000)).chunked(by: 100))

    #expect(try await fixture.manager.load(fixture.url).metrics.bytesDecoded == 10_000)
  }

  @Test("an error states the number of its attempt, unless nothing was sent")
  func attempts() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost), .response(.notFound))

    #expect(try await fixture.failure(fixture.url).attempt == 1)
    #expect(try await fixture.failure(fixture.url).attempt == 1)
    #expect(try await fixture.failure(fixture.url, .policy(.cacheOnly)).attempt == nil)
    let engine = ClosureDownloader { _ throws(CacheError) in
      throw CacheError(.connectionLost, reason: "gave up", attempt: 4)
    }
    #expect(try await fixture.failure(fixture.url, RequestOptions { $0.downloader = .use(engine) }).attempt == 4)
  }
}

@Suite("Executors of values")
struct ProcessingPlaceTests {
  private static let mark = DispatchSpecificKey<String>()

  private static func queue(_ name: String) -> ProcessingExecutor {
    let queue = DispatchQueue(label: name)
    queue.setSpecific(key: mark, value: name)
    return ProcessingExecutor(queue: queue)
  }

  /// The name of the queue that makes the value, before and after a suspension.
  private static let place = ResourceTransform<String>(id: "place", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
    let before = DispatchQueue.getSpecific(key: mark) ?? "-"
    _ = try await body.collect()
    await Task.yield()
    return "\(before) \(DispatchQueue.getSpecific(key: mark) ?? "-")"
  }

  @Test("a value is made on the queue of the request, or of the manager, or on no queue")
  func queues() async throws {
    let fixture = try ManagerFixture { $0.executor = Self.queue("manager") }
    fixture.network.serve(fixture.url) { _ in .ok("bytes") }
    func place(_ executor: (any TaskExecutor)?, _ manager: ResourceManager) async throws -> String {
      let options = RequestOptions {
        $0.executor = executor
        $0.policy = .reload
      }
      return try await manager.load(fixture.url, as: Self.place, options: options).value
    }

    #expect(try await place(Self.queue("own"), fixture.manager) == "own own")
    #expect(try await place(nil, fixture.manager) == "manager manager")
    var bare = fixture.manager.configuration
    bare.executor = nil
    #expect(try await place(nil, ResourceManager(bare)) == "- -")
  }

  @Test("two loads with different queues share the transfer, and each value is made on its own queue")
  func sharing() async throws {
    let fixture = try ManagerFixture { $0.memory = nil }
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes").held(by: gate))
    func load(_ name: String) async throws -> String {
      try await fixture.manager.load(
        fixture.url, as: Self.place, options: RequestOptions { $0.executor = Self.queue(name) }
      ).value
    }

    async let one = load("one")
    async let two = load("two")
    try await Polling.until { fixture.observer.joins >= 1 }
    gate.open()

    #expect(try await [one, two] == ["one one", "two two"])
  }
}
