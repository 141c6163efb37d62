#if Metrics
import CacheCore
import CacheManager
import CacheTelemetry
import CacheTesting
import Foundation
import HTTPTypes
import MemoryStore
import Metrics
import MetricsTestKit
import Testing

@Suite("Metrics", .timeLimit(.minutes(30)))
struct MetricsTests {
  private let backend = TestMetrics()

  private func fixture(memoryLimit: Int = 10 << 20) throws -> TelemetryFixture {
    try TelemetryFixture(
      memoryLimit: memoryLimit,
      { [backend] memory in [.metrics(factory: backend, evictions: ["memory": { memory.counters.evictions }])] })
  }

  private func total(_ label: String, _ dimensions: [(String, String)] = []) -> Int64 {
    backend.counterTotal(label: "etagere_\(label)", dimensions: dimensions)
  }

  private func times(_ label: String, _ dimensions: [(String, String)] = []) -> [Int64] {
    backend.timers(label: "etagere_\(label)", dimensions: dimensions).flatMap(\.values).map { $0 / 1_000_000 }
  }

  @Test("loads are counted and measured by source")
  func sources() async throws {
    let fixture = try fixture()
    try await fixture.loadSlowly()
    for _ in 1...3 { _ = try await fixture.manager.load(fixture.url, as: fixture.slow) }
    fixture.clock.advance(by: .seconds(61))
    fixture.network.respond(to: fixture.url, with: .notModified(cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url, as: fixture.slow)
    fixture.memory.removeAll()
    _ = try await fixture.manager.load(fixture.url)

    let counts = ["network", "memory", "revalidated", "disk"].map { total("loads", [("source", $0)]) }
    #expect(counts == [1, 3, 1, 1])
    #expect(times("load_duration", [("source", "network")]) == [6_000])
    #expect(times("load_duration", [("source", "memory")]) == [0, 0, 0])
  }

  @Test("requests, bytes and the durations of phases are measured")
  func parts() async throws {
    let fixture = try fixture()
    try await fixture.loadSlowly()
    #expect(total("requests", [("conditional", "false")]) == 1)
    #expect(total("responses", [("status", "2xx")]) == 1)
    #expect(total("received_bytes") == 5)
    #expect(total("stored_bytes", [("layer", "memory")]) == 5)
    #expect(total("stored_bytes", [("layer", "disk")]) == 5)
    #expect(times("time_to_head") == [2_000])
    #expect(times("transfer_duration") == [3_000])
    #expect(times("transform_duration") == [3_000])
    #expect(times("commit_duration") == [0])
  }

  @Test("the meters count running and waiting work, and return to zero")
  func meters() async throws {
    let fixture = try fixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes").held(by: gate))
    func values() throws -> [Double?] {
      try ["running_loads", "waiting_loads", "running_transfers"].map { try backend.expectMeter("etagere_\($0)").lastValue }
    }

    async let first = fixture.manager.load(fixture.url)
    await gate.arrived()
    async let second = fixture.manager.load(fixture.url)
    try await Polling.until { total("joined_loads") == 1 }
    #expect(try values() == [2, 0, 1])
    gate.open()
    _ = try await (first, second)
    #expect(try values() == [0, 0, 0])
  }

  @Test("failures are counted by code")
  func failures() async throws {
    let fixture = try fixture()
    fixture.network.respond(to: fixture.url, with: .failure(.connectionLost))
    await #expect(throws: CacheError.self) { try await fixture.manager.load(fixture.url) }
    let load = LoadID()
    let error = CacheError(.diskFull, reason: "no space")
    fixture.telemetry.observe(.storeFailed(key: CacheKey(resource: "a"), error: error), of: load)
    fixture.telemetry.observe(.readFailed(resource: "a", error: error), of: load)
    fixture.telemetry.observe(.backgroundFailed(url: LoadURL(fixture.url), error: error), of: load)
    #expect(total("failed_loads", [("code", "connectionLost")]) == 1)
    #expect(total("store_failures", [("operation", "write"), ("code", "diskFull")]) == 1)
    #expect(total("store_failures", [("operation", "read"), ("code", "diskFull")]) == 1)
    #expect(total("failed_revalidations", [("code", "diskFull")]) == 1)
  }

  /// Makes the stored response stale, and lets the next requests fail.
  private func breakOrigin(_ fixture: TelemetryFixture) async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=60, stale-if-error=600"),
      .response(.serviceUnavailable), .failure(.connectionRefused), .response(.internalServerError))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(61))
  }

  @Test("a stale response in place of one that the origin could not send is counted by reason, and not as a hit")
  func stale() async throws {
    let fixture = try fixture()
    try await breakOrigin(fixture)
    for _ in 1...2 { _ = try await fixture.manager.load(fixture.url) }
    _ = try await fixture.manager.respond(to: HTTPRequest(resource: fixture.url)).body.collect()
    #expect(total("stale_loads", [("reason", "unacceptableStatus")]) == 2)
    #expect(total("stale_loads", [("reason", "connectionRefused")]) == 1)
    #expect(total("loads", [("source", "stale")]) == 3)
    #expect(total("loads", [("source", "memory")]) == 0 && total("loads", [("source", "disk")]) == 0)
  }

  @Test("a body that breaks off is a failure, and a body that its reader leaves is a cancellation")
  func bodies() async throws {
    let fixture = try fixture()
    let request = try HTTPRequest(resource: fixture.url)
    fixture.network.respond(to: fixture.url, with: .ok("bytes").cut(after: 1), .ok("bytes").chunked(by: 1))
    let broken = try await fixture.manager.respond(to: request)
    #expect(try backend.expectMeter("etagere_running_loads").lastValue == 1)
    await #expect(throws: CacheError.self) { try await broken.body.collect() }
    #expect(total("failed_loads", [("code", "truncatedBody")]) == 1)

    let left = try await fixture.manager.respond(to: request)
    _ = try await left.body.source.next()
    left.body.source.cancel()
    #expect(total("cancelled_loads") == 1 && total("failed_loads", [("code", "cancelled")]) == 0)
    #expect(total("loads", [("source", "network")]) == 0)
    #expect(try backend.expectMeter("etagere_running_loads").lastValue == 0)
  }

  @Test("evictions are counted once, by store and reason")
  func evictions() async throws {
    let fixture = try fixture(memoryLimit: 256 << 10)
    for index in 0..<400 {
      let url = try #require(URL(string: "https://example.com/\(index)"))
      fixture.network.respond(to: url, with: .ok(Data(count: 1 << 10), cacheControl: "max-age=60"))
      _ = try await fixture.manager.load(url)
    }
    let evictions = fixture.memory.counters.evictions
    // The counters are read when all work of the load has ended, shortly after its result.
    try await Polling.until {
      EvictionReason.allCases.allSatisfy { reason in
        total("evictions", [("store", "memory"), ("reason", reason.rawValue)]) == Int64(evictions[reason] ?? 0)
      }
    }
    #expect(evictions[.size] ?? 0 > 0)
  }

  @Test("telemetry without a metrics backend is nil")
  func unbootstrapped() {
    #expect(Telemetry([.metrics()]) == nil)
    #expect(Telemetry([.metrics(factory: NOOPMetricsHandler.instance)]) == nil)
    #expect(Telemetry([.metrics(), .records { _ in }]) != nil)
  }
}
#endif
