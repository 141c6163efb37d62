internal import CacheCore

/// Lets previews through until the result is there: one that is finished at that moment comes before it, or never.
final class PreviewGate: Sendable {
  private let isClosed = Lock(false)

  func pass(_ send: () -> Void) {
    isClosed.withLock { isClosed in
      if !isClosed { send() }
    }
  }

  func close() { isClosed.withLock { $0 = true } }
}
