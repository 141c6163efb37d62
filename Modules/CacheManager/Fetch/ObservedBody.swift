internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A response body that reports its end, exactly once: the end of its transfer, or of the response for an HTTP caller. It is used
/// only for loads with an observer.
final class ObservedBody: ResourceBody.Source {
  private struct State {
    var count: Int64 = 0
    /// Called with the error of the body, or with `nil` after its last byte. `nil` after the call.
    var end: (@Sendable (CacheError?) -> Void)?
  }

  private let base: ResourceBody
  private let state: Lock<State>

  init(_ base: ResourceBody, end: @escaping @Sendable (CacheError?) -> Void) {
    self.base = base
    state = Lock(State(end: end))
  }

  /// Counts a released body as complete if all announced bytes were read.
  deinit { finish() }

  var trailers: HTTPFields? { base.source.trailers }

  func next() async throws(CacheError) -> Data? {
    do throws(CacheError) {
      let chunk = try await base.source.next()
      guard let chunk else {
        finish(nil)
        return nil
      }
      let count = state.withLock { state in
        state.count += Int64(chunk.count)
        return state.count
      }
      // The reader of a stream stores the body before it reads the end.
      if count == base.length { finish(nil) }
      return chunk
    } catch {
      // A second task read at the same time. The first one continues.
      if error.code != .misuse { finish(error) }
      throw error
    }
  }

  func cancel() {
    base.source.cancel()
    finish()
  }

  private func finish() { finish(state.withLock { $0.count } == base.length ? nil : .cancelled) }

  private func finish(_ error: CacheError?) {
    let end = state.withLock { state in
      defer { state.end = nil }
      return state.end
    }
    end?(error)
  }
}
