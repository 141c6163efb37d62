import CacheCore
import CacheTesting
import Foundation
import HTTPTypes

/// Returns the error that `work` throws, or `nil`.
func failure(_ work: () async throws -> Void) async -> CacheError? {
  do {
    try await work()
    return nil
  } catch {
    return error as? CacheError
  }
}

extension Downloader {
  func get(_ url: URL, _ fields: HTTPFields = [:], method: HTTPRequest.Method = .get) async throws -> DownloadResponse {
    try await download(DownloadRequest(head: HTTPRequest(resource: url, method: method, headerFields: fields)))
  }

  func text(_ url: URL) async throws -> String { String(decoding: try await get(url).body.collect(), as: UTF8.self) }
}

/// A log of events, in order.
final class Log: Sendable {
  private let lines = Lock<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
