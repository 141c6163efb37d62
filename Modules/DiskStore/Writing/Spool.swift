internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The body that a writer has taken so far: what readers that follow it see.
///
/// The first bytes lie in the temporary file, the latest ones (64 KiB at most, while nothing is written) in memory.
final class Spool: Sendable {
  /// Bytes that stay in memory before they are written out.
  static let pendingLimit = 65_536
  private static let pull: Int64 = 262_144

  enum End: Sendable {
    case committed(HTTPFields?)
    case failed(CacheError)
  }

  private struct State {
    var file: FileDescriptor?
    /// Bytes of the body that the file holds.
    var flushed: Int64 = 0
    var pending = Data()
    var end: End?
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]

    mutating func takeWaiters() -> [CheckedContinuation<Void, Never>] {
      defer { waiters = [:] }
      return Array(waiters.values)
    }
  }

  private let state = Lock(State())
  /// Where the body begins in the file.
  let bodyOffset: Int64

  init(bodyOffset: Int64) { self.bodyOffset = bodyOffset }

  // MARK: The writer's side

  /// Takes bytes into memory.
  func append(_ chunk: Data) {
    // The first one is shared, not copied: most small bodies come in one.
    wake { if $0.pending.isEmpty { $0.pending = chunk } else { $0.pending.append(chunk) } }
  }

  /// What is in memory only.
  var pending: Data { state.withLock { $0.pending } }

  /// The bytes in memory, and `count` more, are in the file now.
  func flushed(_ file: FileDescriptor, count: Int) {
    wake { state in
      state.file = file
      state.flushed += Int64(state.pending.count + count)
      state.pending = Data()
    }
  }

  var length: Int64 { state.withLock { $0.flushed + Int64($0.pending.count) } }

  /// How many bytes of the body are in the file, which is nil while none are.
  var written: (file: FileDescriptor?, count: Int64) { state.withLock { ($0.file, $0.flushed) } }

  /// Readers end, or throw, when they have read what there is.
  func finish(_ end: End) {
    wake { state in
      if state.end == nil { state.end = end }
    }
  }

  var end: End? { state.withLock { $0.end } }

  private func wake(_ change: (inout State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      return state.takeWaiters()
    }
    for waiter in waiters { waiter.resume() }
  }

  // MARK: The readers' side

  enum Step: Sendable {
    case bytes(Data)
    /// So many bytes can be read from the file.
    case read(FileDescriptor, count: Int)
    case end
    case failed(CacheError)
    /// Nothing new yet.
    case wait
  }

  /// What a reader that has read `offset` bytes does next.
  func step(at offset: Int64) -> Step {
    state.withLock { state in
      if offset < state.flushed, let file = state.file {
        return .read(file, count: Int(min(Self.pull, state.flushed - offset)))
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
