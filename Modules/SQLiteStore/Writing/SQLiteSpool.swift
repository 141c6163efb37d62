#if SQLite
internal import CacheCore
internal import GRDB
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The body that a writer has taken so far: what readers that follow it see.
///
/// The first bytes lie in the database, whole pieces of them; the latest ones in memory, half a MiB of them at most while nothing
/// is written.
final class SQLiteSpool: Sendable {
  static let pendingLimit = 8 * ChunkTable.size

  enum End: Sendable {
    case committed(HTTPFields?)
    case failed(CacheError)
  }

  private struct State {
    var lease: EntryLeases.EntryLease?
    var flushed: Int64 = 0
    var pending = Data()
    var end: End?
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Lock(State())

  // MARK: The writer's side

  func append(_ bytes: Data) { wake { $0.pending.append(bytes) } }

  var pending: Data { state.withLock { $0.pending } }

  var length: Int64 { state.withLock { $0.flushed + Int64($0.pending.count) } }

  /// Where the bytes lie that are in the database, and how many they are.
  var flushed: (lease: EntryLeases.EntryLease?, count: Int64) { state.withLock { ($0.lease, $0.flushed) } }

  /// So many of the bytes in memory are in the database now.
  func flush(_ count: Int, _ lease: EntryLeases.EntryLease) {
    wake { state in
      state.lease = lease
      state.flushed += Int64(count)
      state.pending = Data(state.pending.dropFirst(count))
    }
  }

  /// Readers end, or throw, when they have read what there is.
  func finish(_ end: End) {
    wake { if $0.end == nil { $0.end = end } }
  }

  var end: End? { state.withLock { $0.end } }

  private func wake(_ change: (inout State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume() }
  }

  // MARK: The readers' side

  enum Step: Sendable {
    case bytes(Data)
    /// Bytes that the database has.
    case read(EntryLeases.EntryLease, Range<Int64>, of: Int64)
    case end
    case failed(CacheError)
    case wait
  }

  /// What a reader that has read `offset` bytes does next.
  func step(at offset: Int64) -> Step {
    state.withLock { state in
      if offset < state.flushed, let lease = state.lease {
        return .read(lease, offset..<min(state.flushed, offset + Int64(4 * ChunkTable.size)), of: state.flushed)
      }
      if case .failed(let error) = state.end { return .failed(error) }
      let seen = Int(offset - state.flushed)
      // A copy of its own, which counts from zero and does not make the writer copy.
      if seen < state.pending.count { return .bytes(Data(state.pending.dropFirst(seen))) }
      return state.end == nil ? .wait : .end
    }
  }

  /// Returns when there is more than `offset` bytes, at the end, or when the task, or the reader, is cancelled.
  func wait(beyond offset: Int64, unless isCancelled: @Sendable () -> Bool) async {
    let id = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          // Asked under the lock that a cancellation takes to wake us, so none slips in between.
          if Task.isCancelled || isCancelled() || state.end != nil || offset < state.flushed + Int64(state.pending.count) {
            return true
          }
          state.waiters[id] = continuation
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
  }

  /// Wakes all readers, so that one that was cancelled notices.
  func nudge() { wake { _ in } }
}
#endif
