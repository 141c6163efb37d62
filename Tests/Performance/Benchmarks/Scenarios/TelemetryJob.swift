#if Metrics
import CacheCore
import CacheManager
import CacheTelemetry
import CacheTesting
import CacheUI
import ETagValidation
import Foundation
import MemoryStore
import Metrics
import Synchronization

/// Loads with or without an observer of the manager.
///
/// The difference between a run with few and one with many loads is the cost of the additional loads.
struct TelemetryJob: Job {
  static let name = "telemetry"

  enum Observer: String, Codable, Hashable, Sendable, CaseIterable {
    case none = "no observer"
    case unbootstrapped = "metrics without a backend"
    case metrics = "metrics with a backend"
  }

  /// The kind of a load.
  enum Form: String, Codable, Hashable, Sendable, CaseIterable {
    case cachedInMemory, load
    /// A view that shows another image, which is in memory.
    case viewHit = "view, hit"
    /// A view that shows another image, which a scripted network returns.
    case viewCold = "view, cold"

    var isOfView: Bool { self == .viewHit || self == .viewCold }
  }

  let observer: Observer
  let form: Form
  let loads: Int

  func run() async throws -> Measurement {
    if observer == .metrics { MetricsSystem.bootstrap(AtomicMetrics()) }
    let network = ScriptedDownloader()
    guard let url = URL(string: "https://images.example.com/photographs/2026/11/22/1000000.w") else {
      throw BenchmarkFailure("invalid URL")
    }
    network.serve(url) { _ in
      .ok(Data(count: 20 << 10), etag: "\"65a-1f2e3d4c\"", cacheControl: "public, max-age=86400")
    }
    var configuration = ResourceManager.Configuration()
    configuration.downloader = network
    configuration.memory = MemoryCache()
    configuration.validator = ETagValidator()
    if observer != .none { configuration.observer = Telemetry([.metrics()]) }
    let manager = ResourceManager(configuration)
    let request = ResourceRequest(url)
    _ = try await manager.load(request)
    var measurement = Measurement()
    let found =
      switch form {
      case .cachedInMemory: look(request, manager)
      case .load: try await load(request, manager)
      case .viewHit: try await show(request, manager, isCold: false)
      case .viewCold: try await show(request, manager, isCold: true)
      }
    measurement.check("loads", found, is: loads)
    return measurement
  }

  private func look(_ request: ResourceRequest, _ manager: ResourceManager) -> Int {
    (0..<loads).count { _ in manager.cachedInMemory(request, as: .bytes) != nil }
  }

  // On the cooperative pool, as in a server, and not on the main thread.
  @concurrent private func load(_ request: ResourceRequest, _ manager: ResourceManager) async throws -> Int {
    var found = 0
    for _ in 0..<loads { if try await manager.load(request).source == .memory { found += 1 } }
    return found
  }
}

extension TelemetryJob {
  /// Shows an image and no image in turns, and returns how many times it was shown.
  @MainActor private func show(_ request: ResourceRequest, _ manager: ResourceManager, isCold: Bool) async throws -> Int {
    var request = request
    if isCold { (request.options.memory, request.options.policy) = (.disabled, .standard) }
    let pixel = ResourceTransform<DisplayImage>(id: "pixel", cost: { _ in 4 }) { body, _ throws(CacheError) in
      _ = try await body.collect()
      guard let pixels = PixelBuffer(size: PixelSize(1, 1), fill: { _ in }) else {
        throw CacheError(.decodingFailed, reason: "not enough memory for a pixel")
      }
      return try DisplayImage(DecodedImage(pixels))
    }
    _ = try await manager.load(request, as: pixel)
    let model = ImageModel(manager: manager)
    var shown = 0
    for _ in 0..<loads {
      model.load(nil)
      model.load(request, as: pixel)
      while model.phase.isLoading {
        await withCheckedContinuation { continuation in
          model.onChange = {
            model.onChange = nil
            continuation.resume()
          }
        }
      }
      if model.image != nil { shown += 1 }
    }
    return shown
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
