internal import CacheCore
internal import HTTPTypes
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// How a body that broke goes on.
enum Continuation: Sendable {
  /// From these bytes, after so many of them that were handed over already.
  case bytes(any ResourceBody.Source, skipping: Int64)
  /// All bytes had come.
  case complete
}

/// Finds a way on when a body breaks.
protocol BodyRecovery: Sendable {
  /// - Parameters:
  ///   - error: what broke the body; no cancellation.
  ///   - position: bytes that were handed over.
  /// - Throws: what the reader gets.
  func continuation(after error: CacheError, at position: Int64) async throws(CacheError) -> Continuation
}

/// A body that goes on from another transfer when its own breaks. Pulls stay pulls: nothing is read ahead and nothing is kept.
///
/// As long as nothing breaks it costs two short critical sections a chunk.
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

  /// `length` is the bytes that the whole must have, where that is to be checked here.
  init(_ source: any ResourceBody.Source, length: Int64?, log: AttemptLog, recovery: any BodyRecovery) {
    self.recovery = recovery
    self.log = log
    self.length = length
    state = Lock(State(source: source))
  }

  // Also where somebody else holds the source: letting go of this body is to stop the transfer.
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
        // Two readers at once is the caller's mistake, and no reason to end the body.
        if error.code == .misuse { throw error }
        guard try await recover(from: error) else { return nil }
      }
    }
  }

  /// Where the next bytes are; nil: the body has ended.
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

  /// The part of a chunk that has not been handed over yet; nil: none of it.
  private func accept(_ chunk: Data) throws(CacheError) -> Data? {
    let part = state.withLock { state -> Data? in
      guard state.skip > 0 else { return chunk }
      let skipped = min(state.skip, Int64(chunk.count))
      state.skip -= skipped
      return Int64(chunk.count) > skipped ? chunk.dropFirst(Int(skipped)) : nil
    }
    guard let part else { return nil }
    let position = log.delivered.load(ordering: .relaxed) + Int64(part.count)
    if let length, position > length {
      throw CacheError(.malformedResponse, reason: "the body goes on after the \(length) bytes that it was to have")
    }
    // One reader at a time, so this is no race.
    log.delivered.store(position, ordering: .relaxed)
    return part
  }

  private func checkLength() throws(CacheError) {
    let position = log.delivered.load(ordering: .relaxed)
    guard let length, position < length else { return }
    throw CacheError(.truncatedBody, reason: "the body ended after \(position) of \(length) bytes")
  }

  private func end(_ outcome: Outcome) {
    state.withLock { $0.outcome = outcome }
    if case .ended = outcome { log.finish() }
  }

  // MARK: Recovery

  /// - Returns: false when nothing is missing.
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

  /// In a task of its own, one for each time that the body breaks, so that ``cancel()`` ends a wait for the next request at once.
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
