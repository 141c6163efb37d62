import CacheCore
import CacheTesting
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
    path = FileManager.default.resolvedTemporaryPath + "/etagere-layers-\(Revision.random())"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var url: URL { URL(filePath: path, directoryHint: .isDirectory) }

  func put(_ data: Data, _ name: String) throws { try data.write(to: URL(filePath: "\(path)/\(name)")) }

  func put(_ text: String, _ name: String) throws { try put(Data(text.utf8), name) }
}

func metadata(
  revision: Revision = .random(), etag: String = "\"a\"", at time: Timestamp = Timestamp(seconds: 1_767_225_600),
  vary: String? = nil
) -> StoredMetadata {
  var response = HTTPResponse(status: .ok)
  response.headerFields[.eTag] = etag
  response.headerFields[.vary] = vary
  return StoredMetadata(
    request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a"), response: response,
    requestTime: time, responseTime: time, revision: revision, freshness: Freshness(generatedAt: time, freshUntil: time))
}

extension CacheStore {
  /// Returns the whole body under `key`, or `nil` for a miss.
  func bytes(_ key: CacheKey) async throws -> Data? { try await entry(for: key)?.body.collect() }

  func text(_ key: CacheKey) async throws -> String? { try await bytes(key).map { String(decoding: $0, as: UTF8.self) } }
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
