import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Foundation
import HTTPTypes
import MemoryStore
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A temporary folder, which is removed when the test releases it.
final class DownloadFolder: Sendable {
  let url: URL

  init() throws {
    url = URL(
      filePath: FileManager.default.resolvedTemporaryPath + "/etagere-files-\(Revision.random())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func file(_ name: String = "film.mp4") -> URL { url.appending(path: name, directoryHint: .notDirectory) }

  /// The names of all files in the folder, including hidden files.
  var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []).sorted() }

  func content(_ name: String = "film.mp4") -> Data? { try? Data(contentsOf: file(name)) }
}

/// Bytes that depend on their position, so that a lost or repeated part is detected.
func filePattern(_ count: Int) -> Data { longestFilePattern.prefix(count) }

private let longestFilePattern = Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
