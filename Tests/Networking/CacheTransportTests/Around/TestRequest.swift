import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

/// The requests that the tests of this folder send.
enum TestRequest {
  static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  static func request(
    _ text: String, method: HTTPRequest.Method = .get, fields: HTTPFields = [:], priority: LoadPriority = LoadPriority(),
    timeout: Duration? = nil
  ) throws -> DownloadRequest {
    DownloadRequest(
      head: try HTTPRequest(resource: url(text), method: method, headerFields: fields), priority: priority, timeout: timeout)
  }
}

/// A random number generator that repeats its numbers at each run (SplitMix64).
struct Seeded: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
    return z ^ z >> 31
  }
}

/// A downloader based on a closure, for responses that a script cannot express.
struct HandlerDownloader: Downloader {
  let id = ComponentID.unique(HandlerDownloader.self)
  let handler: @Sendable (DownloadRequest) async throws(CacheError) -> DownloadResponse

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse { try await handler(request) }
}
