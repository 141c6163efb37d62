package import HTTPTypes

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A body that passes hooks and side effects as it is read. They run in the reader's own task, so they hold up nobody else.
package final class HookedBody: ResourceBody.Source {
  private struct State {
    /// Bytes as the engine delivered them.
    var taken: Int64 = 0
    /// Bytes as they were handed over.
    var given: Int64 = 0
    /// What was handed over, as long as it is within the limit.
    var kept: Data?
    var outcome: Outcome?
  }

  private enum Outcome { case complete, failed(CacheError) }

  private let base: any ResourceBody.Source
  private let length: Int64?
  private let head: HTTPResponse
  private let replaces: Bool
  private let exchange: HookedExchange?
  private let sideEffects: [DataSideEffect]
  private let keepLimit: Int
  private let state: Lock<State>

  /// - Parameters:
  ///   - length: bytes that `base` is going to deliver, where that is known.
  ///   - replaces: whether hooks may hand over another number of bytes than they were given.
  ///   - exchange: nil where there are side effects alone.
  package init(
    _ base: any ResourceBody.Source, length: Int64?, head: HTTPResponse, replaces: Bool = false, exchange: HookedExchange?,
    sideEffects: [DataSideEffect]
  ) {
    self.base = base
    self.length = length
    self.head = head
    self.replaces = replaces
    self.exchange = exchange
    self.sideEffects = sideEffects
    keepLimit = exchange?.hooks?.decodedDataLimit ?? 0
    state = Lock(State(kept: keepLimit > 0 ? Data() : nil))
  }

  /// Who let go of it has had everything when all announced bytes were taken, or when none were coming.
  deinit { exchange?.finish(isWhole ? .success(head) : .failure(.cancelled)) }

  package func next() async throws(CacheError) -> Data? {
    switch state.withLock({ $0.outcome }) {
    case .complete: return nil
    case .failed(let error): throw error
    case nil: break
    }
    do {
      while let data = try await base.next() {
        let passed = try await pass(data)
        if !passed.isEmpty { return passed }
      }
      return end()
    } catch {
      // Read by two tasks at once: the first goes on.
      guard error.code != .misuse || state.withLock({ $0.outcome }) != nil else { throw error }
      state.withLock { $0.outcome = .failed(error) }
      base.cancel()
      exchange?.finish(.failure(error))
      throw error
    }
  }

  package func cancel() {
    base.cancel()
    if !isWhole { exchange?.finish(.failure(.cancelled)) }
  }

  package var trailers: HTTPFields? { base.trailers }

  private var isWhole: Bool {
    state.withLock { state in
      if case .complete? = state.outcome { return true }
      return length == state.taken
    }
  }

  private func pass(_ data: Data) async throws(CacheError) -> Data {
    var passed = data
    if let exchange, let hooks = exchange.hooks {
      passed = try await hooks.received(data, of: exchange.exchange)
      guard replaces || passed.count == data.count else {
        let reason = "a hook made \(passed.count) of \(data.count) bytes, and had not said that it replaces the body"
        let error = CacheError(.invalidConfiguration, reason: reason)
        throw error
      }
    }
    let count = passed.count
    let kept = passed
    let offset = state.withLock { state in
      state.taken += Int64(data.count)
      defer { state.given += Int64(count) }
      if let sum = state.kept?.count { if sum + count <= keepLimit { state.kept?.append(kept) } else { state.kept = nil } }
      return state.given
    }
    guard !passed.isEmpty else { return passed }
    for effect in sideEffects where effect.applies() {
      try await effect.run(DataSideEffect.Chunk(data: passed, offset: offset, expected: replaces ? nil : length))
    }
    return passed
  }

  private func end() -> Data? {
    let body = state.withLock { state in
      state.outcome = .complete
      defer { state.kept = nil }
      return DecodedBody(head: head, count: state.given, data: state.given <= Int64(keepLimit) ? state.kept : nil)
    }
    exchange?.finish(.success(head))
    if let exchange { exchange.hooks?.decoded(body, of: exchange.exchange) }
    return nil
  }
}
