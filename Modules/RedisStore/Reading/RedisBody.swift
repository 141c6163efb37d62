#if Redis
internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The body of a large entry, read and checked in chunks.
final class RedisBody: ResourceBody.Source {
  private enum State { case reading(Int64, [Data]), pulling(Int64), ended, failed(CacheError) }

  private let record: EntryRecord
  private let end: Int64
  private let tag: HashTag
  private let engine: RedisEngine
  private let state: Lock<State>

  init(_ record: EntryRecord, _ range: Range<Int64>, _ tag: HashTag, _ engine: RedisEngine) {
    (self.record, self.tag, self.engine) = (record, tag, engine)
    end = range.upperBound
    state = Lock(range.isEmpty ? .ended : .reading(range.lowerBound, []))
  }

  private enum Step { case chunk(Data), read(Int64), end }

  func next() async throws(CacheError) -> Data? {
    let step: Step = try state.withLock { state throws(CacheError) in
      switch state {
      case .reading(let offset, var chunks):
        guard !chunks.isEmpty else {
          state = .pulling(offset)
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
    case .read(let start): return try await read(from: start)
    }
  }

  private func read(from start: Int64) async throws(CacheError) -> Data {
    let range = start..<min(end, BodyChunks.endOfRead(from: start))
    do throws(CacheError) {
      guard var chunks = try await BodyChunks.read(range, of: record.length, record.bodyID, tag, engine) else {
        engine.count { $0.damaged += 1 }
        throw CacheError(.damagedEntry, reason: "the stored body is damaged, or the Redis server has removed it")
      }
      let chunk = chunks.removeFirst()
      try state.withLock { state throws(CacheError) in
        if case .failed(let error) = state { throw error }
        state = range.upperBound == end && chunks.isEmpty ? .ended : .reading(range.upperBound, chunks)
      }
      return chunk
    } catch {
      state.withLock { if case .pulling = $0 { $0 = .failed(error) } }
      throw error
    }
  }

  func cancel() {
    state.withLock { state in
      switch state {
      case .reading, .pulling: state = .failed(.cancelled)
      case .ended, .failed: break
      }
    }
  }

  var trailers: HTTPFields? {
    state.withLock { state in
      if case .ended = state { record.metadata.trailers } else { nil }
    }
  }
}
#endif
