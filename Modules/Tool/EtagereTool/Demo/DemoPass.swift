#if Demo
import Etagere
import Foundation
import LoopbackOrigin

/// One pass over a list of resources, measured by the durations of its loads and by the counters of the origin.
struct DemoPass: Sendable {
  var name: String
  var times: [Duration]
  var wall: Duration
  var requests: Int
  var notModified: Int
  var bodyBytes: Int
  var bytesSent: Int
  var sources: [ResourceSource: Int]
  var validations: [RevalidationOutcome: Int]
  /// The differences from the expected result, as sentences.
  var wrong: [String]

  var sum: Duration { times.reduce(.zero, +) }
  var mean: Duration { times.isEmpty ? .zero : sum / times.count }

  /// Loads every item, `parallel` at a time, and compares the bytes with those of the origin.
  static func run(
    _ name: String, _ items: [DemoContent.Item], with manager: ResourceManager, from origin: OriginServer, parallel: Int
  ) async -> DemoPass {
    origin.resetCounters()
    let clock = SystemClock()
    let start = clock.uptime
    let outcomes = await BoundedLoads(parallel: parallel).run(items) { item in
      let start = clock.uptime
      do throws(CacheError) {
        let resource = try await manager.load(origin.url(item.path))
        return (clock.uptime - start, Result<Resource<Data>, CacheError>.success(resource), item)
      } catch {
        return (clock.uptime - start, .failure(error), item)
      }
    }
    let wall = clock.uptime - start
    let counters = origin.counters
    var pass = DemoPass(
      name: name, times: outcomes.map(\.0), wall: wall, requests: counters.requests, notModified: counters.notModified,
      bodyBytes: counters.bodyBytesSent, bytesSent: counters.bytesSent, sources: [:], validations: [:], wrong: [])
    for (_, result, item) in outcomes {
      switch result {
      case .success(let resource):
        pass.sources[resource.source, default: 0] += 1
        pass.validations[resource.validation, default: 0] += 1
        if resource.data != item.body { pass.wrong.append("\(name): \(item.path) differs from the bytes of the origin") }
      case .failure(let error): pass.wrong.append("\(name): \(error)")
      }
    }
    return pass
  }

  /// Compares the counters with the expected ones.
  mutating func expect(
    requests: Int, notModified: Int, bodyBytes: Int, source allowed: ResourceSource..., validation: RevalidationOutcome
  ) {
    func check(_ what: String, _ seen: Int, _ expected: Int) {
      if seen != expected { wrong.append("\(name): \(seen) \(what), expected \(expected)") }
    }
    check("requests", self.requests, requests)
    check("304s", self.notModified, notModified)
    check("body bytes", self.bodyBytes, bodyBytes)
    let from = allowed.map { "\($0)" }.joined(separator: " or ")
    check("loads from \(from)", allowed.reduce(0) { $0 + (sources[$1] ?? 0) }, times.count)
    check("loads with validation \(Text.kebabCase(validation.rawValue))", validations[validation] ?? 0, times.count)
  }
}

/// The system's clock with an offset, so that responses become stale without a wait.
final class DemoClock: CacheClock {
  private let base = SystemClock()
  private let ahead = Lock(Duration.zero)

  var now: Timestamp { base.now + ahead.withLock { $0 } }

  var uptime: Duration { base.uptime }

  func sleep(for duration: Duration) async throws(CancellationError) { try await base.sleep(for: duration) }

  func advance(by duration: Duration) { ahead.withLock { $0 += duration } }

  /// Runs the passes of a demo with an origin on this clock, which then stops.
  func withOrigin(_ passes: (OriginServer) async throws -> Void) async throws {
    let origin = try await OriginServer.start(now: { [self] in Date(timeIntervalSince1970: Double(now.nanoseconds) / 1e9) })
    do {
      try await passes(origin)
    } catch {
      await origin.stop()
      throw error
    }
    await origin.stop()
  }

  /// Returns the configuration of a manager on this clock, with a cache if there is a folder for it.
  func configuration(
    _ downloader: any Downloader, folder: URL?, _ reporting: ReportingOptions
  ) throws -> ResourceManager.Configuration {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = reporting.tracing(downloader)
    configuration.clock = self
    guard let folder else { return configuration }
    configuration.memory = MemoryCache(clock: self)
    configuration.store = try DiskCache(folder: folder, configuration: .init(clock: self))
    configuration.validator = ETagValidator()
    // On a slow disk too, everything is stored before the next pass.
    configuration.storeWriteTimeout = nil
    return configuration
  }
}

/// The simulated link, and the shortest times that it permits. The demo compares its times with these.
struct DemoLink: Sendable {
  static let bitsPerSecond = 2_000_000
  static let latency = Duration.milliseconds(5)

  static var link: NetworkLink { NetworkLink(bitsPerSecond: bitsPerSecond, latency: latency) }

  static var roundTrip: Duration { latency * 2 }

  /// Returns the time that this number of bytes occupies the link.
  static func transmission(_ bytes: Int) -> Duration { .seconds(1) * (Double(bytes) * 8 / Double(bitsPerSecond)) }
}

/// The pass that runs and the number of passes before it, for the progress bar of a demo.
final class DemoProgress: Sendable {
  private struct State {
    var name: String
    var begun = 0
  }

  private let state: Lock<State>

  init(_ first: String) { state = Lock(State(name: first)) }

  /// The name of the pass that runs.
  var current: String { state.withLock { $0.name } }

  /// The number of passes that have ended. Passes run one after another.
  var finished: Int { state.withLock { max(0, $0.begun - 1) } }

  func begin(_ name: String) {
    state.withLock {
      $0.name = name
      $0.begun += 1
    }
  }
}
#endif
