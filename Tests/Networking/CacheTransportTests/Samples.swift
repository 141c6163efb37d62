import CacheCore
import CacheTesting
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A temporary folder for one test, removed when it is released.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.resolvedTemporaryPath + "/etagere-files-\(Revision.random())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func put(_ data: Data, _ name: String) throws { try data.write(to: url(name)) }

  func url(_ name: String) -> URL { URL(filePath: "\(path)/\(name)", directoryHint: .notDirectory) }
}

/// Returns bytes that encode their position, so that a lost or repeated part is detected.
func pattern(_ count: Int) -> Data { Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }) }

/// Returns the error that `work` throws, or `nil` if there is none.
func failure(_ work: () async throws -> Void) async -> CacheError? {
  do {
    try await work()
    return nil
  } catch {
    return error as? CacheError
  }
}
