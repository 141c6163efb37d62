internal import CacheCore
internal import HTTPTypes
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The continuation of a body that failed.
enum Continuation: Sendable {
  /// A source to continue from, after skipping the bytes that were already returned.
  case bytes(any ResourceBody.Source, skipping: Int64)
  /// No bytes are missing.
  case complete
}

/// A strategy for a body that fails.
protocol BodyRecovery: Sendable {
  /// - Parameters:
  ///   - error: The error of the body, which is not a cancellation.
  ///   - position: The number of bytes already returned.
  /// - Throws: The error for the reader.
  func continuation(after error: CacheError, at position: Int64) async throws(CacheError) -> Continuation
}

/// A body that continues from another transfer if its own fails. It reads nothing ahead and buffers nothing.
///
/// Without a failure, its cost is two short critical sections per chunk.
final class RecoveringBody: ResourceBody.Source {
  private enum Outcome { case ended, failed(CacheError) }

  private struct State {
    var source: any ResourceBody.Source
    var skip: Int64 = 0
    var outcome: Outcome?
    var isCancelled = false
    var recovery: Task<Result<Continuation, CacheError>, Never>?
  }

  private let recovery: any BodyRecovery
  private let log: AttemptLog
  private let length: Int64?
  private let state: Lock<State>

  /// `length` is the expected length of the complete body, or `nil` if it is not checked here.
  init(_ source: any ResourceBody.Source, length: Int64?, log: AttemptLog, recovery: any BodyRecovery) {
    self.recovery = recovery
    self.log = log
    self.length = length
    state = Lock(State(source: source))
  }

  // Releasing this body stops the transfer even if other code retains the source.
  deinit { state.withLock { $0.source }.cancel() }

  var trailers: HTTPFields? {
    let ended = state.withLock { state -> (any ResourceBody.Source)? in
      if case .ended = state.outcome { return state.source }
      return nil
    }
    return ended?.trailers
  }

  func cancel() {
    let (source, task) = state.withLock { state in
      state.isCancelled = true
      return (state.source, state.recovery)
    }
    task?.cancel()
    source.cancel()
  }

  func next() async throws(CacheError) -> Data? {
    while true {
      guard let source = try source() else { return nil }
      do throws(CacheError) {
        guard let chunk = try await source.next() else {
          try checkLength()
          end(.ended)
          return nil
        }
        if let part = try accept(chunk) { return part }
      } catch {
        // Two concurrent readers are the caller's mistake and must not end the body.
        if error.code == .misuse { throw error }
        guard try await recover(from: error) else { return nil }
      }
    }
  }

  /// Returns the current source, or `nil` if the body has ended.
  private func source() throws(CacheError) -> (any ResourceBody.Source)? {
    try state.withLock { state throws(CacheError) in
      switch state.outcome {
      case .ended: return nil
      case .failed(let error): throw error
      case nil: break
      }
      if state.isCancelled { throw .cancelled }
      return state.source
    }
  }

  /// Returns the part of a chunk that was not returned yet, or `nil` if there is none.
  private func accept(_ chunk: Data) throws(CacheError) -> Data? {
    let part = state.withLock { state -> Data? in
      guard state.skip > 0 else { return chunk }
      let skipped = min(state.skip, Int64(chunk.count))
      state.skip -= skipped
      return Int64(chunk.count) > skipped ? chunk.dropFirst(Int(skipped)) : nil
    }
    guard let part else { return nil }
    let position = log.delivered.load(ordering: .relaxed) + Int64(part.count)
    if let length, position > length { throw .overlong(expected: length) }
    // Not a race, because only one reader is admitted at a time.
    log.delivered.store(position, ordering: .relaxed)
    return part
  }

  private func checkLength() throws(CacheError) {
    let position = log.delivered.load(ordering: .relaxed)
    guard let length, position < length else { return }
    throw .truncated(received: position, expected: length)
  }

  private func end(_ outcome: Outcome) {
    state.withLock { $0.outcome = outcome }
    if case .ended = outcome { log.finish() }
  }

  // MARK: Recovery

  /// - Returns: `false` if no bytes are missing.
  private func recover(from error: CacheError) async throws(CacheError) -> Bool {
    do throws(CacheError) {
      if state.withLock({ $0.isCancelled }) || Task.isCancelled || error.isCancellation { throw .cancelled }
      switch try await continuation(after: error) {
      case .complete:
        end(.ended)
        return false
      case .bytes(let source, let skip):
        let isCancelled = state.withLock { state in
          state.source = source
          state.skip = skip
          return state.isCancelled
        }
        guard !isCancelled else {
          source.cancel()
          throw .cancelled
        }
        return true
      }
    } catch {
      end(.failed(error))
      throw error
    }
  }

  /// Runs the recovery in a separate task, one per failure, so that ``cancel()`` ends a delay at once.
  private func continuation(after error: CacheError) async throws(CacheError) -> Continuation {
    let position = log.delivered.load(ordering: .relaxed)
    let task = Task { [recovery] () async -> Result<Continuation, CacheError> in
      do throws(CacheError) {
        return .success(try await recovery.continuation(after: error, at: position))
      } catch {
        return .failure(error)
      }
    }
    let isCancelled = state.withLock { state in
      state.recovery = task
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
    let result = await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
    let wasCancelled = state.withLock { state in
      state.recovery = nil
      return state.isCancelled
    }
    if wasCancelled || Task.isCancelled {
      if case .success(.bytes(let source, _)) = result { source.cancel() }
      throw .cancelled
    }
    return try result.get()
  }
}
