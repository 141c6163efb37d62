package import HTTPTypes

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The body of a stored entry whose chunks are read when they are needed, for stores that divide a body into chunks.
package final class ChunkedBody: ResourceBody.Source {
  private enum State {
    /// The position after the chunks that have been read but not returned.
    case reading(Int64, [Data])
    case pulling
    case ended
    case failed(CacheError)
  }

  private enum Step { case chunk(Data), read(Int64), end }

  private let end: Int64
  private let finalTrailers: HTTPFields?
  private let read: @Sendable (Int64) async throws(CacheError) -> [Data]
  private let state: Lock<State>

  /// - Parameters:
  ///   - range: The bytes of the body to read.
  ///   - trailers: The trailers of the entry.
  ///   - read: Reads and checks one or more chunks of the range, from a position on.
  package init(
    _ range: Range<Int64>, trailers: HTTPFields?, read: @escaping @Sendable (Int64) async throws(CacheError) -> [Data]
  ) {
    end = range.upperBound
    finalTrailers = trailers
    self.read = read
    state = Lock(range.isEmpty ? .ended : .reading(range.lowerBound, []))
  }

  package func next() async throws(CacheError) -> Data? {
    let step: Step = try state.withLock { state throws(CacheError) in
      switch state {
      case .reading(let offset, var chunks):
        guard !chunks.isEmpty else {
          state = .pulling
          return .read(offset)
        }
        let chunk = chunks.removeFirst()
        state = offset == end && chunks.isEmpty ? .ended : .reading(offset, chunks)
        return .chunk(chunk)
      case .pulling: throw CacheError(.misuse, reason: "a body was read by two tasks at once")
      case .ended: return .end
      case .failed(let error): throw error
      }
    }
    switch step {
    case .chunk(let chunk): return chunk
    case .end: return nil
    case .read(let start): return try await pull(from: start)
    }
  }

  private func pull(from start: Int64) async throws(CacheError) -> Data {
    do throws(CacheError) {
      var chunks = try await read(start)
      let offset = chunks.reduce(start) { $0 + Int64($1.count) }
      let chunk = chunks.removeFirst()
      try state.withLock { state throws(CacheError) in
        if case .failed(let error) = state { throw error }
        state = offset == end && chunks.isEmpty ? .ended : .reading(offset, chunks)
      }
      return chunk
    } catch {
      state.withLock { if case .pulling = $0 { $0 = .failed(error) } }
      throw error
    }
  }

  package func cancel() {
    state.withLock { state in
      switch state {
      case .reading, .pulling: state = .failed(.cancelled)
      case .ended, .failed: break
      }
    }
  }

  package var trailers: HTTPFields? {
    state.withLock { state in
      if case .ended = state { finalTrailers } else { nil }
    }
  }
}
