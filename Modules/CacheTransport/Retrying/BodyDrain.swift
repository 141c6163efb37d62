internal import CacheCore

/// A reader for the short body of a discarded response. It reads to the end, so that the connection can be reused, but only until
/// the next request is sent.
///
/// A slow server must not delay the next request. Neither the load nor the connection, or a slot of ``LimitedDownloader``, may
/// wait for the end of an unneeded body.
final class BodyDrain: Sendable {
  private let body = Lock<ResourceBody?>(nil)

  /// - Parameters:
  ///   - body: A body of at most `limit` bytes.
  ///   - limit: The maximum number of bytes.
  ///   - ended: A closure called after the body was read, failed or was cancelled.
  func begin(_ body: ResourceBody, limit: Int64, ended: @escaping @Sendable () -> Void) {
    self.body.withLock { $0 = body }
    Task.detached(priority: .utility) {
      _ = try? await body.collect(limit: limit)
      body.source.cancel()
      ended()
    }
  }

  /// Cancels the unread rest of the body.
  func end() {
    let rest = body.withLock { body in
      defer { body = nil }
      return body
    }
    rest?.source.cancel()
  }
}
