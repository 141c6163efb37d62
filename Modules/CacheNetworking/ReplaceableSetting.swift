internal import CacheCore

/// A setting of a downloader that may be replaced while downloads read it.
final class ReplaceableSetting<Value: Sendable>: Sendable {
  private let current: Lock<Value>

  init(_ value: Value) { current = Lock(value) }

  var value: Value {
    get { current.withLock { $0 } }
    set {
      // The old value is released outside the lock, because that may run code of the app.
      let old = current.withLock { current in
        defer { current = newValue }
        return current
      }
      withExtendedLifetime(old) {}
    }
  }
}
