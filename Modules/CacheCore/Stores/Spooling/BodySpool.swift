internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The part of a body that a writer has received so far, for readers that follow the writer.
///
/// The first bytes are in the store as whole chunks. The latest ones are in memory.
final class BodySpool<Location: Sendable>: Sendable {
  enum End: Sendable {
    case committed(HTTPFields?)
    case failed(CacheError)
  }

  private struct State {
    var location: Location?
    var flushed: Int64 = 0
    var pending = Data()
    var end: End?
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  /// The number of bytes that one read returns.
  private let readSize: Int64
  private let state = Lock(State())

  init(chunkSize: Int) { readSize = Int64(4 * chunkSize) }

  // MARK: The writer's side

  func append(_ bytes: Data) { wake { $0.pending.append(bytes) } }

  var pending: Data { state.withLock { $0.pending } }

  var length: Int64 { state.withLock { $0.flushed + Int64($0.pending.count) } }

  /// The place of the body in the store, and the number of its bytes there.
  var flushed: (location: Location?, count: Int64) { state.withLock { ($0.location, $0.flushed) } }

  /// Records that this many of the bytes in memory are now in the store.
  func flush(_ count: Int, _ location: Location) {
    wake { state in
      state.location = location
      state.flushed += Int64(count)
      state.pending = Data(state.pending.dropFirst(count))
    }
  }

  /// Ends the body: readers end or throw after the last byte.
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
    /// A range of bytes in the store.
    case read(Location, Range<Int64>, of: Int64)
    case end
    case failed(CacheError)
    case wait
  }

  /// Returns the next step of a reader that has read `offset` bytes.
  func step(at offset: Int64) -> Step {
    state.withLock { state in
      if offset < state.flushed, let location = state.location {
        return .read(location, offset..<min(state.flushed, offset + readSize), of: state.flushed)
      }
      if case .failed(let error) = state.end { return .failed(error) }
      let seen = Int(offset - state.flushed)
      // A separate copy has indices from zero and does not force the writer to copy its buffer.
      if seen < state.pending.count { return .bytes(Data(state.pending.dropFirst(seen))) }
      return state.end == nil ? .wait : .end
    }
  }

  /// Returns when more than `offset` bytes are available, at the end, or when the task or the reader is cancelled.
  func wait(beyond offset: Int64, unless isCancelled: @Sendable () -> Bool) async {
    let id = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          // Checked under the lock that a cancellation takes before it resumes the waiter, so no cancellation is missed.
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

  /// Wakes all readers, so that a cancelled one notices the cancellation.
  func nudge() { wake { _ in } }
}
