#if Metrics
import CacheCore
import CacheManager
import CacheTelemetry
import CacheTesting
import ETagValidation
import Foundation
import MemoryStore
import Metrics
import Synchronization

/// Hits in memory with or without an observer of the manager.
///
/// The difference between a run with few and one with many hits is the cost of the additional hits.
struct TelemetryJob: Job {
  static let name = "telemetry"

  enum Observer: String, Codable, Hashable, Sendable, CaseIterable {
    case none = "no observer"
    case unbootstrapped = "metrics without a backend"
    case metrics = "metrics with a backend"
  }

  let observer: Observer
  let isAsync: Bool
  let hits: Int

  func run() async throws -> Measurement {
    if observer == .metrics { MetricsSystem.bootstrap(AtomicMetrics()) }
    let network = ScriptedDownloader()
    guard let url = URL(string: "https://images.example.com/photographs/2026/11/22/1000000.w") else {
      throw BenchmarkFailure("invalid URL")
    }
    network.respond(to: url, with: .ok(Data(count: 20 << 10), etag: "\"65a-1f2e3d4c\"", cacheControl: "public, max-age=86400"))
    var configuration = ResourceManager.Configuration()
    configuration.downloader = network
    configuration.memory = MemoryCache()
    configuration.validator = ETagValidator()
    if observer != .none { configuration.observer = Telemetry([.metrics()]) }
    let manager = ResourceManager(configuration)
    let request = ResourceRequest(url)
    _ = try await manager.load(request)
    var measurement = Measurement()
    let found = isAsync ? try await load(request, manager) : look(request, manager)
    measurement.check("hits", found, is: hits)
    return measurement
  }

  private func look(_ request: ResourceRequest, _ manager: ResourceManager) -> Int {
    (0..<hits).count { _ in manager.cachedInMemory(request, as: .bytes) != nil }
  }

  // On the cooperative pool, as in a server, and not on the main thread.
  @concurrent private func load(_ request: ResourceRequest, _ manager: ResourceManager) async throws -> Int {
    var found = 0
    for _ in 0..<hits { if try await manager.load(request).source == .memory { found += 1 } }
    return found
  }
}

/// A backend that adds the values of each metric to one number, as the cheapest real backends do.
private final class AtomicMetrics: MetricsFactory {
  private final class Metric: CounterHandler, TimerHandler, MeterHandler, RecorderHandler {
    private let sum = Atomic<Int64>(0)

    func increment(by amount: Int64) { sum.wrappingAdd(amount, ordering: .relaxed) }
    func recordNanoseconds(_ duration: Int64) { sum.wrappingAdd(duration, ordering: .relaxed) }
    func record(_ value: Int64) { sum.wrappingAdd(value, ordering: .relaxed) }
    func record(_ value: Double) { record(Int64(value)) }
    func increment(by amount: Double) { record(Int64(amount)) }
    func decrement(by amount: Double) { record(-Int64(amount)) }
    func set(_ value: Int64) { sum.store(value, ordering: .relaxed) }
    func set(_ value: Double) { set(Int64(value)) }
    func reset() { set(Int64(0)) }
  }

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { Metric() }
  func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { Metric() }
  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { Metric() }
  func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler { Metric() }
  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyMeter(_ handler: any MeterHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
  func destroyRecorder(_ handler: any RecorderHandler) {}
}
#endif
