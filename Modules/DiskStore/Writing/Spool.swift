internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The part of a body that a writer has received so far, for readers that follow the writer.
///
/// The first bytes are in the temporary file and the latest ones, at most 64 KiB between writes, in memory.
final class Spool: Sendable {
  /// The number of bytes that stay in memory before they are written to the file.
  static let pendingLimit = 65_536
  private static let pull: Int64 = 262_144

  enum End: Sendable {
    case committed(HTTPFields?)
    case failed(CacheError)
  }

  private struct State {
    var file: FileDescriptor?
    /// The number of body bytes in the file.
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
  /// The offset of the body in the file.
  let bodyOffset: Int64

  init(bodyOffset: Int64) { self.bodyOffset = bodyOffset }

  // MARK: The writer's side

  /// Appends bytes in memory.
  func append(_ chunk: Data) {
    // The first chunk is shared, not copied: most small bodies consist of one chunk.
    wake { if $0.pending.isEmpty { $0.pending = chunk } else { $0.pending.append(chunk) } }
  }

  /// The bytes that are in memory only.
  var pending: Data { state.withLock { $0.pending } }

  /// Records that the bytes in memory, and `count` more, are now in the file.
  func flushed(_ file: FileDescriptor, count: Int) {
    wake { state in
      state.file = file
      state.flushed += Int64(state.pending.count + count)
      state.pending = Data()
    }
  }

  var length: Int64 { state.withLock { $0.flushed + Int64($0.pending.count) } }

  /// The file, or `nil` before the first write, and the number of body bytes in it.
  var written: (file: FileDescriptor?, count: Int64) { state.withLock { ($0.file, $0.flushed) } }

  /// Ends the body: readers end or throw after the last byte.
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
    /// A range of this many bytes can be read from the file.
    case read(FileDescriptor, count: Int)
    case end
    case failed(CacheError)
    /// No new bytes are available.
    case wait
  }

  /// Returns the next step of a reader that has read `offset` bytes.
  func step(at offset: Int64) -> Step {
    state.withLock { state in
      if offset < state.flushed, let file = state.file {
        return .read(file, count: Int(min(Self.pull, state.flushed - offset)))
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
