internal import CacheCore

/// Reads the short body of an answer that was given back to its end, so that its connection can be used again: while the next
/// request waits for its time, and no longer.
///
/// A server that is slow with a body that nobody wants must not hold the next request up, neither by the load's own waiting nor
/// by a connection, or a slot of ``LimitedDownloader``, that the body keeps until it has ended.
final class BodyDrain: Sendable {
  private let body = Lock<ResourceBody?>(nil)

  /// - Parameters:
  ///   - body: no longer than `limit`.
  ///   - limit: bytes.
  ///   - ended: called when it has been read, has broken or has been given up.
  func begin(_ body: ResourceBody, limit: Int64, ended: @escaping @Sendable () -> Void) {
    self.body.withLock { $0 = body }
    Task.detached(priority: .utility) {
      _ = try? await body.collect(limit: limit)
      body.source.cancel()
      ended()
    }
  }

  /// Gives up what has not come yet.
  func end() {
    let rest = body.withLock { body in
      defer { body = nil }
      return body
    }
    rest?.source.cancel()
  }
}
