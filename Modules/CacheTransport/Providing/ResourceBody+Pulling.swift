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
        guard let chunk = try await pull() else { return try finish() }
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
      let error = CacheError(
        .malformedResponse, reason: "the body is longer than the announced \(length) bytes")
      // The closure has more bytes and must learn that no reader will request them.
      if end(.failure(error)) { onCancel?() }
      throw error
    }
    return chunk
  }

  private func finish() throws(CacheError) -> Data? {
    try check()
    let delivered = state.withLock { $0.delivered }
    if let length, delivered < length {
      throw CacheError(.truncatedBody, reason: "the body ended after \(delivered) of \(length) bytes")
    }
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
