#if Origin
import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import LoopbackOrigin
import MemoryStore
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Rounds of loads that are all cancelled before the origin responds.
struct CancelledJob: Job {
  static let name = "cancelled"

  let layer: ClientKind.Layer
  let loads: Int
  let rounds: Int

  func run() async throws -> Measurement {
    let origin = try await OriginServer.start()
    origin.setRoute("/held", Route(Data(), delivery: .gated(by: Gate())))
    let (load, close) = try makeLoad()
    var measurement = Measurement()
    for _ in 0..<rounds {
      let tasks = (0..<loads).map { number in Task { try await load(origin.url("/held?\(number)")) } }
      try await Task.sleep(for: .milliseconds(20))
      for task in tasks { task.cancel() }
      for task in tasks {
        guard case .failure = await task.result else { continue }
        measurement.add(1, to: .cancelled)
      }
    }
    measurement.check("cancelled loads", measurement[.cancelled].count, is: loads * rounds)
    measurement[.cancelled] = [Double(measurement[.cancelled].count)]
    // Foundation ends the last tasks some time after their callers have ended.
    try await Task.sleep(for: .seconds(2))
    if let resident = ProcessUsage.residentMemory { measurement.add(resident, to: .resident) }
    await close()
    await origin.stop()
    return measurement
  }

  /// Returns a function that loads a URL and one that closes the connections.
  private func makeLoad() throws -> (load: @Sendable (URL) async throws -> Void, close: @Sendable () async -> Void) {
    if layer == .bare {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.urlCache = nil
      configuration.httpMaximumConnectionsPerHost = 6
      let session = URLSession(configuration: configuration)
      return ({ _ = try await session.data(from: $0) }, { session.invalidateAndCancel() })
    }
    let open = try Engine.session.makeDownloader()
    let manager = ResourceManager(
      .init {
        $0.downloader = open.downloader
        $0.validator = ETagValidator()
        $0.memory = MemoryCache()
      })
    return (
      { _ = try await manager.load($0) },
      {
        await manager.close()
        await open.close()
      }
    )
  }
}
#endif
