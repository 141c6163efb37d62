internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A body in chunks that can be held, and can break.
final class ScriptedBody: Body.Source {
  private struct State {
    var position = 0
    var isCancelled = false
    var isFinished = false
  }

  private let bytes: Data
  private let answer: ScriptedAnswer
  private let onCancel: @Sendable () -> Void
  private let state = Lock(State())

  init(_ bytes: Data, _ answer: ScriptedAnswer, onCancel: @escaping @Sendable () -> Void) {
    self.bytes = bytes
    self.answer = answer
    self.onCancel = onCancel
  }

  deinit { cancel() }

  var delivered: Int64 { state.withLock { Int64($0.position) } }

  var trailers: HTTPFields? { nil }

  func next() async throws(CacheError) -> Data? {
    await answer.bodyGate?.pass()
    if Task.isCancelled { cancel() }
    let end = min(answer.cutAfter ?? bytes.count, bytes.count)
    return try state.withLock { state throws(CacheError) in
      if state.isCancelled { throw .cancelled }
      guard state.position < end else {
        state.isFinished = true
        guard end == bytes.count else {
          throw CacheError(.truncatedBody, reason: "the body ended after \(end) of \(bytes.count) bytes")
        }
        return nil
      }
      let upper = min(state.position + answer.chunkSize, end)
      defer { state.position = upper }
      return bytes.subdata(in: bytes.startIndex + state.position..<bytes.startIndex + upper)
    }
  }

  func cancel() {
    let isFirst = state.withLock { state in
      // An empty body is over before anybody has asked for it.
      guard !state.isCancelled, !state.isFinished, state.position < bytes.count else { return false }
      state.isCancelled = true
      return true
    }
    if isFirst { onCancel() }
  }
}
