#if Service
package import CacheCore

/// The error of a request, which one part of the request's handling notes for another.
package final class NotedFailure: Sendable {
  private let error = Lock<CacheError?>(nil)

  package init() {}

  package func note(_ error: CacheError) { self.error.withLock { $0 = error } }

  package var value: CacheError? { error.withLock { $0 } }
}
#endif
