internal import CacheCore

/// The handler for challenges, which all sessions of a downloader share. It may be replaced while they run.
final class CurrentHandler: Sendable {
  private let handler: Lock<AuthenticationChallenge.Handler>

  init(_ handler: AuthenticationChallenge.Handler) { self.handler = Lock(handler) }

  var value: AuthenticationChallenge.Handler {
    get { handler.withLock { $0 } }
    set {
      // The old handler is released outside the lock, because that may run code of the app.
      let old = handler.withLock { handler in
        defer { handler = newValue }
        return handler
      }
      withExtendedLifetime(old) {}
    }
  }
}
