#if SQLite
internal import CacheCore
internal import GRDB
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The body of a large entry, read and checked chunk by chunk.
final class SQLiteBody: ResourceBody.Source {
  private enum State { case reading(Int64), pulling(Int64), ended, failed(CacheError) }

  /// The number of bytes that one read returns.
  private static let pull = Int64(4 * ChunkTable.size)

  private let row: EntryRow
  private let end: Int64
  private let lease: EntryLeases.EntryLease
  private let engine: SQLiteEngine
  private let state: Lock<State>

  init(_ row: EntryRow, _ range: Range<Int64>, _ lease: EntryLeases.EntryLease, _ engine: SQLiteEngine) {
    self.row = row
    self.lease = lease
    self.engine = engine
    end = range.upperBound
    state = Lock(range.isEmpty ? .ended : .reading(range.lowerBound))
  }

  func next() async throws(CacheError) -> Data? {
    let start: Int64? = try state.withLock { state throws(CacheError) in
      switch state {
      case .reading(let offset):
        state = .pulling(offset)
        return offset
      case .pulling: throw CacheError(.misuse, reason: "a body was read by two tasks at once")
      case .ended: return nil
      case .failed(let error): throw error
      }
    }
    guard let start else { return nil }
    do throws(CacheError) {
      let chunk = try await read(start..<min(end, (start / Self.pull + 1) * Self.pull))
      return try finish(start + Int64(chunk.count), chunk)
    } catch {
      state.withLock { if case .pulling = $0 { $0 = .failed(error) } }
      throw error
    }
  }

  private func read(_ range: Range<Int64>) async throws(CacheError) -> Data {
    let bytes = try await engine.file.read { [row, lease] database, opening in
      // A database that was recreated numbers its entries from one again.
      guard opening === lease.opening else { return Data?.none }
      return try ChunkTable.read(database, row.id, row.metadata.revision, range, of: row.length)
    }
    if let bytes { return bytes }
    await engine.discard(damaged: row.id, in: lease.opening)
    throw CacheError(.damagedEntry, reason: "the stored body is damaged or was removed", path: engine.file.path)
  }

  private func finish(_ offset: Int64, _ chunk: Data) throws(CacheError) -> Data {
    try state.withLock { state throws(CacheError) in
      if case .failed(let error) = state { throw error }
      state = offset < end ? .reading(offset) : .ended
    }
    return chunk
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
      if case .ended = state { row.metadata.trailers } else { nil }
    }
  }
}
#endif
