public import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceBody {
  /// Creates a body whose chunks a closure produces on demand, so that memory does not grow with the length.
  ///
  /// ```swift
  /// let body = ResourceBody(length: file.size, onCancel: { file.close() }) { try await file.read(65_536) }
  /// ```
  ///
  /// - Parameters:
  ///   - length: The number of bytes, or `nil` if it is unknown. A shorter body throws `CacheError.Code.truncatedBody`, a longer
  ///     one `malformedResponse`.
  ///   - onCancel: A closure called once if the body is cancelled, released before its end, or longer than `length`. `next` may
  ///     be running. It is not called after `next` has returned `nil` or thrown.
  ///   - next: A closure that returns the next chunk, or `nil` at the end. Calls do not overlap. Its error is final and is mapped
  ///     as for ``ClosureDownloader``.
  public init(
    length: Int64? = nil, onCancel: (@Sendable () -> Void)? = nil, pulling next: @escaping @Sendable () async throws -> Data?
  ) {
    self.init(length: length, source: PulledBody(length: length, onCancel: onCancel, next: next))
  }

  /// Creates a body from the chunks of an asynchronous sequence, such as an `AsyncStream` or the body of another HTTP
  /// client.
  ///
  /// ```swift
  /// let (chunks, continuation) = AsyncStream<Data>.makeStream()
  /// let body = ResourceBody(chunks)
  /// ```
  ///
  /// One task iterates over the sequence, and requests a chunk when a reader does. It is cancelled if the body or its reader is
  /// cancelled, and if the body is released before its end. A sequence that ends early because of that is not a complete body.
  ///
  /// - Parameters:
  ///   - chunks: The sequence. Map other elements to `Data`: `buffers.map { Data($0.readableBytesView) }`.
  ///   - length: The number of bytes, or `nil` if it is unknown. A shorter body throws `CacheError.Code.truncatedBody`, a longer
  ///     one `malformedResponse`.
  ///
  /// An error of the sequence is final. A `CacheError` is passed on. Another error is the `underlying` error of
  /// `CacheError.Code.connectionLost`, so the body can be resumed or replaced by a stale response.
  public init<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks, length: Int64? = nil) where Chunks.Element == Data {
    // An iterator is not Sendable. It stays in one task, to which the readers send their continuations.
    let (requests, request) = AsyncStream<Resumption<Result<Data?, any Error>>>.makeStream()
    let iteration = Task {
      var iterator = chunks.makeAsyncIterator()
      for await reader in requests {
        do {
          let chunk = try await iterator.next()
          reader.resume(returning: .success(chunk))
          if chunk == nil { break }
        } catch {
          let isKnown = error is CacheError || error is CancellationError || Task.isCancelled
          reader.resume(
            returning: .failure(
              isKnown ? error : CacheError(.connectionLost, reason: "the body broke off: \(error)", underlying: error)))
          break
        }
      }
    }
    self.init(length: length, onCancel: { iteration.cancel() }) {
      try await withTaskCancellationHandler {
        try await withResumption { reader in
          // A cancelled task has ended the stream of requests.
          if case .terminated = request.yield(reader) { reader.resume(returning: .failure(CancellationError())) }
        }.get()
      } onCancel: {
        iteration.cancel()
      }
    }
  }
}

/// The source of `ResourceBody.init(length:onCancel:pulling:)`.
private final class PulledBody: ResourceBody.Source {
  private struct State {
    var delivered: Int64 = 0
    var isBusy = false
    var outcome: Result<Void, CacheError>?
  }

  private let length: Int64?
  private let onCancel: (@Sendable () -> Void)?
  private let pull: @Sendable () async throws -> Data?
  private let state = Lock(State())

  init(length: Int64?, onCancel: (@Sendable () -> Void)?, next: @escaping @Sendable () async throws -> Data?) {
    self.length = length
    self.onCancel = onCancel
    pull = next
  }

  deinit { cancel() }

  var trailers: HTTPFields? { nil }

  func cancel() {
    if end(.failure(.cancelled)) { onCancel?() }
  }

  func next() async throws(CacheError) -> Data? {
    let isOver = try state.withLock { state throws(CacheError) in
      guard !state.isBusy else { throw CacheError(.misuse, reason: "two tasks read a body at the same time") }
      if let outcome = state.outcome {
        try outcome.get()
        return true
      }
      state.isBusy = true
      return false
    }
    guard !isOver else { return nil }
    defer { state.withLock { $0.isBusy = false } }
    do {
      // An empty chunk is not the end, and readers do not expect one.
      while true {
        if Task.isCancelled { throw CacheError.cancelled }
        guard let chunk = try await pull() else {
          // Many sequences end without an error if their task is cancelled.
          if Task.isCancelled { throw CacheError.cancelled }
          return try finish()
        }
        if !chunk.isEmpty { return try take(chunk) }
        try check()
      }
    } catch {
      let error = CacheError(provider: error)
      if error.isCancellation { cancel() } else { end(.failure(error)) }
      throw error
    }
  }

  private func check() throws(CacheError) {
    try state.withLock { state throws(CacheError) in try state.outcome?.get() }
  }

  private func take(_ chunk: Data) throws(CacheError) -> Data {
    try check()
    let delivered = state.withLock { state in
      state.delivered += Int64(chunk.count)
      return state.delivered
    }
    if let length, delivered > length {
      let error = CacheError.overlong(expected: length)
      // The closure has more bytes and must learn that no reader will request them.
      if end(.failure(error)) { onCancel?() }
      throw error
    }
    return chunk
  }

  private func finish() throws(CacheError) -> Data? {
    try check()
    let delivered = state.withLock { $0.delivered }
    if let length, delivered < length { throw .truncated(received: delivered, expected: length) }
    end(.success(()))
    return nil
  }

  /// - Returns: Whether the body had not ended before.
  @discardableResult
  private func end(_ outcome: Result<Void, CacheError>) -> Bool {
    state.withLock { state in
      guard state.outcome == nil else { return false }
      state.outcome = outcome
      return true
    }
  }
}
