import CacheTesting
import Etagere
import Foundation

/// A temporary folder, which is removed when the test releases it.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.resolvedTemporaryPath + "/etagere-whole-\(Revision.random())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var url: URL { URL(filePath: path, directoryHint: .isDirectory) }

  /// All files at any depth.
  var files: [URL] {
    let names = (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []
    return names.map { URL(filePath: "\(path)/\($0)") }.filter {
      (try? $0.resourceValues(forKeys: [.isRegularFileKey]))?.isRegularFile == true
    }
  }

  /// The files of the disk store's entries.
  var entries: [URL] { files.filter { $0.pathExtension == "e" } }
}

/// Bytes that depend on their position, so that a lost or repeated part is detected.
func pattern(_ count: Int, seed: Int = 0) -> Data {
  Data((0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 31 &+ $0 >> 8) })
}

/// Returns the error that `work` throws, or `nil` if it throws none.
func failure(_ work: () async throws -> Void) async -> CacheError? {
  do {
    try await work()
    return nil
  } catch {
    return error as? CacheError
  }
}

extension ResourceManager {
  /// Returns a manager with the default configuration and a folder. Loads wait for a slow disk, so that another manager finds
  /// their responses.
  static func standard(
    _ folder: TemporaryFolder, _ change: (inout Configuration) -> Void = { _ in }
  ) throws -> ResourceManager {
    var configuration = try Configuration.standard(folder: folder.url, memoryLimit: 64 << 20)
    configuration.storeWriteTimeout = .seconds(600)
    change(&configuration)
    return ResourceManager(configuration)
  }
}
