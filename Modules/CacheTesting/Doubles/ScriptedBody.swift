internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A body in chunks that can be held by a gate and can end with an error.
final class ScriptedBody: ResourceBody.Source {
  private struct State {
    var position = 0
    var isCancelled = false
    var isFinished = false
    var total: Duration?
    /// A closure that resumes a read that waits at the gate.
    var wake: (@Sendable () -> Void)?
  }

  private let bytes: Data
  private let response: ScriptedResponse
  private let onEnd: @Sendable () -> Duration
  private let onCancel: @Sendable () -> Void
  private let state = Lock(State())

  /// - Parameters:
  ///   - bytes: The bytes of the body.
  ///   - response: The scripted response, which controls the delivery.
  ///   - onEnd: A closure that returns the total duration. It is called once, after the last byte.
  ///   - onCancel: A closure that is called once if the body is released before its end.
  init(
    _ bytes: Data, _ response: ScriptedResponse, onEnd: @escaping @Sendable () -> Duration,
    onCancel: @escaping @Sendable () -> Void
  ) {
    self.bytes = bytes
    self.response = response
    self.onEnd = onEnd
    self.onCancel = onCancel
  }

  deinit { cancel() }

  var delivered: Int64 { state.withLock { Int64($0.position) } }

  /// The time from the request to the last byte, or `nil` before that byte.
  var total: Duration? { state.withLock { $0.total } }

  var trailers: HTTPFields? { nil }

  func next() async throws(CacheError) -> Data? {
    if let gate = response.bodyGate { await pass(gate) }
    if Task.isCancelled { cancel() }
    let end = min(response.cutAfter ?? bytes.count, bytes.count)
    if let chunk = try chunk(upTo: end) { return chunk }
    let total = onEnd()
    state.withLock { $0.total = $0.total ?? total }
    return nil
  }

  /// Waits until the gate opens, the reader's task is cancelled, or `cancel()` is called.
  private func pass(_ gate: Gate) async {
    let passage = WatchedState(false)
    let wake: @Sendable () -> Void = { passage.update { $0 = true } }
    let isCancelled = state.withLock { state in
      state.wake = wake
      return state.isCancelled
    }
    guard !isCancelled else { return }
    let ticket = gate.arrive(wake)
    await passage.wait { $0 }
    gate.withdraw(ticket)
    state.withLock { $0.wake = nil }
  }

  private func chunk(upTo end: Int) throws(CacheError) -> Data? {
    try state.withLock { state throws(CacheError) in
      if state.isCancelled { throw .cancelled }
      guard state.position < end else {
        state.isFinished = true
        guard end == bytes.count else {
          throw CacheError(.truncatedBody, reason: "the body ended after \(end) of \(bytes.count) bytes")
        }
        return nil
      }
      let upper = min(state.position + response.chunkSize, end)
      defer { state.position = upper }
      return bytes.subdata(in: bytes.startIndex + state.position..<bytes.startIndex + upper)
    }
  }

  func cancel() {
    let (isFirst, wake): (Bool, (@Sendable () -> Void)?) = state.withLock { state in
      // An empty body has ended before the first read.
      guard !state.isCancelled, !state.isFinished, state.position < bytes.count else { return (false, nil) }
      state.isCancelled = true
      return (true, state.wake)
    }
    wake?()
    if isFirst { onCancel() }
  }
}
