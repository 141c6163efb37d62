#if Origin
import Etagere
import Foundation
import LoopbackOrigin

/// An origin and a folder for one test, closed in order at its end.
struct OriginFixture {
  let origin: OriginServer
  let folder: TemporaryFolder

  static func run(_ body: (OriginFixture) async throws -> Void) async throws {
    let origin = try await OriginServer.start()
    let fixture = OriginFixture(origin: origin, folder: try TemporaryFolder())
    do {
      try await body(fixture)
    } catch {
      await origin.stop()
      throw error
    }
    await origin.stop()
  }

  /// Returns a new manager with the folder, as after the start of a program.
  func manager(_ change: (inout ResourceManager.Configuration) -> Void = { _ in }) throws -> ResourceManager {
    try .standard(folder, change)
  }

  func requests(_ path: String) -> Int { origin.counters(for: path).requests }
}

extension SessionDownloader {
  /// A downloader whose idle timeout does not end on a busy machine.
  static func patient() -> SessionDownloader {
    var configuration = Configuration()
    configuration.idleTimeout = .seconds(3_600)
    return SessionDownloader(configuration: configuration)
  }
}
#endif
