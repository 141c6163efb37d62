internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A request body that is produced while it is sent.
final class ChunkSource: ResourceBody.Source {
  private struct State {
    var next = 0
    var isCancelled = false
  }

  private let chunks: [Data]
  private let before: @Sendable (Int) async throws(CacheError) -> Void
  private let state = Lock(State())

  /// - Parameters:
  ///   - chunks: The chunks of the body, none of them empty.
  ///   - before: A closure that is called before each chunk is returned. Its error becomes the error of the body.
  init(_ chunks: [Data], before: @escaping @Sendable (Int) async throws(CacheError) -> Void = { _ in }) {
    self.chunks = chunks
    self.before = before
  }

  /// Concatenates the chunks. Appending byte by byte would take seconds in a debug build.
  static func whole(_ chunks: [Data]) -> Data { chunks.reduce(into: Data()) { $0.append($1) } }

  func next() async throws(CacheError) -> Data? {
    let index = try state.withLock { state throws(CacheError) in
      if state.isCancelled { throw .cancelled }
      defer { state.next += 1 }
      return state.next
    }
    guard index < chunks.count else { return nil }
    try await before(index)
    return chunks[index]
  }

  func cancel() { state.withLock { $0.isCancelled = true } }

  var trailers: HTTPFields? { nil }
}
