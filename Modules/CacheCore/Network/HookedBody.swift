package import HTTPTypes

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A body that passes its chunks through hooks. The hooks run in the reader's task.
package final class HookedBody: ResourceBody.Source {
  private struct State {
    /// The number of bytes that the engine delivered.
    var taken: Int64 = 0
    var outcome: Outcome?
  }

  private enum Outcome { case complete, failed(CacheError) }

  private let base: any ResourceBody.Source
  private let length: Int64?
  private let head: HTTPResponse
  private let replaces: Bool
  private let exchange: HookedExchange
  private let state = Lock(State())

  /// - Parameters:
  ///   - length: The number of bytes that `base` delivers, or `nil` if it is unknown.
  ///   - replaces: Whether the hooks may return a different number of bytes than they receive.
  package init(
    _ base: any ResourceBody.Source, length: Int64?, head: HTTPResponse, replaces: Bool, exchange: HookedExchange
  ) {
    self.base = base
    self.length = length
    self.head = head
    self.replaces = replaces
    self.exchange = exchange
  }

  /// A body that is released counts as complete if all announced bytes were read.
  deinit { exchange.finishBody(isWhole ? .success(head) : .failure(.cancelled)) }

  package func next() async throws(CacheError) -> Data? {
    switch state.withLock({ $0.outcome }) {
    case .complete: return nil
    case .failed(let error): throw error
    case nil: break
    }
    while let data = try await nextOfBase() {
      do {
        let passed = try await pass(data)
        if !passed.isEmpty { return passed }
      } catch { throw fail(error) }
    }
    return end()
  }

  private func nextOfBase() async throws(CacheError) -> Data? {
    do {
      return try await base.next()
    } catch {
      // Two tasks read at the same time. The read of the first one continues.
      guard error.code != .misuse || state.withLock({ $0.outcome }) != nil else { throw error }
      throw fail(error)
    }
  }

  private func fail(_ error: CacheError) -> CacheError {
    state.withLock { $0.outcome = .failed(error) }
    base.cancel()
    exchange.finishBody(.failure(error))
    return error
  }

  package func cancel() {
    base.cancel()
    if !isWhole { exchange.finishBody(.failure(.cancelled)) }
  }

  package var trailers: HTTPFields? { base.trailers }

  private var isWhole: Bool {
    state.withLock { state in
      if case .complete? = state.outcome { return true }
      return length == state.taken
    }
  }

  private func pass(_ data: Data) async throws(CacheError) -> Data {
    let passed = try await exchange.replace(data)
    guard replaces || passed.count == data.count else {
      throw CacheError(
        .invalidConfiguration, reason: "a hook returned \(passed.count) bytes for \(data.count) without proceedReplacingBody")
    }
    state.withLock { $0.taken += Int64(data.count) }
    return passed
  }

  private func end() -> Data? {
    state.withLock { $0.outcome = .complete }
    exchange.finishBody(.success(head))
    return nil
  }
}
