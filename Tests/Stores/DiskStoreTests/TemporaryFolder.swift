import CacheCore
import CacheTesting
import DiskStore
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A folder for one test, removed with its last reference.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.resolvedTemporaryPath + "/etagere-disk-\(Revision.random())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var root: String { path + "/etagere-1" }

  /// Opens one of several caches in the folder, which waits without limit for another one's lock.
  func sharedCache(
    at path: String? = nil, clock: any CacheClock = SystemClock(), configuration: DiskCache.Configuration? = nil,
    calls: FileCalls = .system
  ) throws -> DiskCache {
    var calls = calls
    calls.lockAttempts = .max
    return try DiskCache(path: path ?? self.path, configuration: configuration ?? .init(clock: clock), calls: calls)
  }

  /// The files of the entries, sorted.
  var entryFiles: [String] { files(below: root + "/entries") }

  /// The space in bytes that the files of the entries and the folders of the resources occupy, in blocks of 4 KiB.
  var allocatedSize: Int64 {
    let files = entryFiles
    let folders = Set(files.map { $0.dropLast(35) }.filter { $0.hasSuffix(".d") })
    return files.reduce(Int64(folders.count) * 4_096) { sum, path in
      let size = (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int64 ?? 0
      return sum + (size + 4_095) / 4_096 * 4_096
    }
  }

  /// The files in `tmp` except locks.
  var temporaryFiles: [String] { files(below: root + "/tmp").filter { !$0.hasSuffix(".lock") } }

  func files(below folder: String) -> [String] {
    guard let names = try? FileManager.default.subpathsOfDirectory(atPath: folder) else { return [] }
    return names.map { "\(folder)/\($0)" }.filter { path in
      var isFolder: Bool = false
      return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && !isFolder
    }.sorted()
  }
}

/// Random numbers that are the same in every run.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}

func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
  var generator = SeededGenerator(state: seed)
  var data = Data(capacity: count + 8)
  while data.count < count { withUnsafeBytes(of: generator.next()) { data.append(contentsOf: $0) } }
  return data.prefix(count)
}

func file(_ path: String) throws -> Data { try Data(contentsOf: URL(filePath: path)) }

func put(_ data: Data, _ path: String) throws { try data.write(to: URL(filePath: path)) }

func fileExists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

func metadata(
  revision: Revision = .random(), etag: String = "\"a\"", at time: Timestamp = Timestamp(seconds: 1_767_225_600),
  expiration: Expiration? = nil, padding: Int = 0
) -> StoredMetadata {
  var response = HTTPResponse(status: .ok)
  response.headerFields[.eTag] = etag
  if padding > 0 { response.headerFields[.server] = String(repeating: "x", count: padding) }
  return StoredMetadata(
    request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a"), response: response,
    requestTime: time, responseTime: time, revision: revision, freshness: Freshness(generatedAt: time, freshUntil: time),
    expiration: expiration)
}

extension DiskCache {
  /// Returns the whole body under `key`, or `nil` for a miss.
  func bytes(_ key: CacheKey) async throws -> Data? { try await entry(for: key)?.body.collect() }
}

/// Returns the error that `work` throws, if any.
func failure(_ work: () async throws -> Void) async -> CacheError? {
  do {
    try await work()
    return nil
  } catch {
    return error as? CacheError
  }
}

/// Returns the checksum of the format, computed bit by bit from its polynomial.
func crc(_ data: Data) -> UInt32 {
  var crc = UInt32.max
  for byte in data {
    crc ^= UInt32(byte)
    for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ 0x82F6_3B78 : crc >> 1 }
  }
  return ~crc
}
