#if Origin
import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import LoopbackOrigin
import MemoryStore

/// Many simultaneous loads of one resource: in memory, and not cached.
struct WaitersJob: Job {
  static let name = "waiters"

  let engine: Engine
  let waiters: Int
  /// The size of the body in bytes.
  let size: Int
  let batches: Int

  func run() async throws -> Measurement {
    let origin = try await OriginServer.start()
    let open = try engine.makeDownloader()
    let manager = ResourceManager(
      .init {
        $0.downloader = open.downloader
        $0.memory = MemoryCache()
        $0.validator = ETagValidator()
      })
    var measurement = Measurement()
    // The first batch is the warm-up.
    for batch in 0...batches {
      var one = Measurement()
      try await self.batch(batch, manager, origin, &one)
      if batch > 0 {
        for quantity in [Measurement.Quantity.wall, .download, .hits, .hitsInTurn, .requests] {
          measurement[quantity] += one[quantity]
        }
      }
      measurement.failures += one.failures
    }
    await manager.close()
    await open.close()
    await origin.stop()
    return measurement
  }

  private func batch(
    _ batch: Int, _ manager: ResourceManager, _ origin: OriginServer, _ measurement: inout Measurement
  ) async throws {
    let body = Pattern.bytes(size)
    func publish(_ path: String, gate: Gate? = nil) -> URL {
      origin.setRoute(
        path,
        Route(body, etag: "1", fields: [.cacheControl: "max-age=3600"], delivery: OriginDelivery(gate: gate)))
      return origin.url(path)
    }
    let hit = publish("/hit-\(batch)")
    var watch = Stopwatch()
    if try await manager.load(hit).data != body { measurement.failures.append("the body differs from the origin's") }
    measurement.add(watch.wall, to: .download)

    watch = Stopwatch()
    var right = await load(hit, with: manager) {}
    measurement.add(watch.wall, to: .hits)
    measurement.check("hits", right, is: waiters)

    watch = Stopwatch()
    right = 0
    for _ in 0..<waiters where try await manager.load(hit).data.count == size { right += 1 }
    measurement.add(watch.wall, to: .hitsInTurn)
    measurement.check("hits in one task", right, is: waiters)

    // The response is delayed until every waiter has begun, so that they wait and do not load from memory.
    let gate = Gate()
    let begun = AtomicCounter()
    let cold = publish("/cold-\(batch)", gate: gate)
    watch = Stopwatch()
    right = await load(cold, with: manager) { if begun.next() == waiters { gate.open() } }
    measurement.add(watch.wall, to: .wall)
    measurement.check("waiters served", right, is: waiters)
    let requests = origin.counters(for: "/cold-\(batch)").requests
    measurement.add(requests, to: .requests)
    measurement.check("requests", requests, is: 1)
  }

  /// - Returns: The number of loads with a body of the right size.
  private func load(_ url: URL, with manager: ResourceManager, _ begin: @escaping @Sendable () -> Void) async -> Int {
    let size = size
    return await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<waiters {
        group.addTask {
          begin()
          return (try? await manager.load(url))?.data.count == size
        }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
  }
}
#endif
