import CacheCore
import CacheManager
import CacheTelemetry
import CacheTesting
import ETagValidation
import Foundation
import MemoryStore
import Testing

/// A manager with an observer over a scripted network.
struct TelemetryFixture {
  let clock = ManualClock()
  let network: ScriptedDownloader
  let memory: MemoryCache
  let disk: VolatileStore
  let telemetry: Telemetry
  let manager: ResourceManager
  /// A URL with parts that no report may contain.
  let url: URL

  init(
    memoryLimit: Int = 10 << 20, _ outlets: (MemoryCache) -> [Telemetry.Outlet],
    _ change: (inout ResourceManager.Configuration) -> Void = { _ in }
  ) throws {
    network = ScriptedDownloader(clock: clock)
    memory = MemoryCache(limits: .init(cost: memoryLimit), clock: clock)
    disk = VolatileStore(clock: clock)
    telemetry = try #require(Telemetry(outlets(memory), clock: clock))
    var configuration = ResourceManager.Configuration()
    configuration.downloader = network
    configuration.memory = memory
    configuration.store = disk
    configuration.validator = ETagValidator()
    configuration.observer = telemetry
    configuration.clock = clock
    configuration.callbackQueue = .immediate
    change(&configuration)
    manager = ResourceManager(configuration)
    url = try #require(URL(string: "https://user:hunter2@example.com/image.png?token=secret#part"))
  }

  /// A transform that takes three seconds.
  var slow: ResourceTransform<Int> {
    ResourceTransform(id: "slow", cost: { _ in 1 }) { [clock] body, _ throws(CacheError) in
      let count = try await body.collect().count
      clock.advance(by: .seconds(3))
      return count
    }
  }

  /// Loads a value whose head takes two seconds and whose body takes one more.
  func loadSlowly() async throws {
    let gate = Gate()
    network.respond(to: url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60").after(.seconds(2)).bodyHeld(by: gate))
    async let load = manager.load(url, as: slow)
    await clock.sleepers(1)
    clock.advance(by: .seconds(2))
    await gate.arrived()
    clock.advance(by: .seconds(1))
    gate.open()
    _ = try await load
  }
}

/// The received values, in order.
final class Received<Element: Sendable>: Sendable {
  private let values = Lock<[Element]>([])

  var all: [Element] { values.withLock { $0 } }

  func append(_ value: Element) { values.withLock { $0.append(value) } }
}
