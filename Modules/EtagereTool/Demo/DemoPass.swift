#if Tool
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

  /// Returns the time that this share of the loads did not exceed.
  func percentile(_ share: Double) -> Duration { times.percentile(share) }

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
#endif
