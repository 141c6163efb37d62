import CacheCore
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A random number generator with the same numbers in each run.
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

extension StoredMetadata {
  /// Returns metadata that has all optional values.
  static func whole() -> StoredMetadata {
    StoredMetadata(
      request: HTTPRequest(
        method: .get, scheme: "https", authority: "example.com", path: "/a?b", headerFields: [.acceptLanguage: "de"]),
      response: HTTPResponse(status: .ok, headerFields: [.eTag: "\"v1\"", .cacheControl: "max-age=60"]),
      trailers: [.eTag: "\"late\""], requestTime: Timestamp(nanoseconds: 1_000), responseTime: Timestamp(nanoseconds: 2_000),
      bodyLength: 258, revision: Revision(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10),
      freshness: Freshness(
        generatedAt: Timestamp(nanoseconds: -1), freshUntil: Timestamp(nanoseconds: 3_000), requiresRevalidation: true,
        staleWhileRevalidateUntil: Timestamp(nanoseconds: 4_000), staleIfErrorUntil: .distantFuture),
      expiration: .after(.seconds(1)))
  }
}

/// A source of given chunks that records reads and cancellation.
final class ChunkSource: ResourceBody.Source {
  private struct State {
    var chunks: [Data]
    var pulls = 0
    var isCancelled = false
  }

  private let state: Lock<State>

  init(_ chunks: [String]) { state = Lock(State(chunks: chunks.map { Data($0.utf8) })) }

  var pulls: Int { state.withLock { $0.pulls } }
  var isCancelled: Bool { state.withLock { $0.isCancelled } }
  var trailers: HTTPFields? { nil }

  func next() async throws(CacheError) -> Data? {
    try state.withLock { state throws(CacheError) in
      if state.isCancelled { throw .cancelled }
      state.pulls += 1
      return state.chunks.isEmpty ? nil : state.chunks.removeFirst()
    }
  }

  func cancel() { state.withLock { $0.isCancelled = true } }
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
