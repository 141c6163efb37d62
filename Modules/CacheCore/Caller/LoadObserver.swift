/// What happened on the way of a load, for logs, metrics and tests.
public enum CacheEvent: Sendable {
  /// A load was joined to one that was under way already, or to a step of it.
  case joined(url: String)
  /// A request went out.
  case requestSent(url: String, conditional: Bool)
  /// A head came back.
  case responseReceived(url: String, status: Int)
  /// An answer was stored, in which layer and with how many bytes.
  case stored(key: CacheKey, layer: CacheLayer, bytes: Int64)
  /// The value of a transform is ready. `key` is the key that it is stored under.
  case transformed(key: CacheKey, origin: ValueOrigin)
  /// A layer could not store or update an entry. The load itself goes on.
  case storeFailed(key: CacheKey, error: CacheError)
  /// A layer could not be read; the load treats it as a miss.
  case readFailed(resource: String, error: CacheError)
  /// The origin confirmed a stored response with a 304.
  case revalidated(key: CacheKey)
  /// A revalidation that nobody waits for any more has failed.
  case backgroundFailed(url: String, error: CacheError)
  /// A load has ended.
  case finished(url: String, source: ResourceSource?, error: CacheError?, duration: Duration)
}

/// Is told what happens. Called synchronously, from any thread: return quickly.
public protocol LoadObserver: Component {
  /// One event.
  func observe(_ event: CacheEvent)
}

/// A layer of the cache.
public enum CacheLayer: String, Hashable, Sendable, CaseIterable {
  case memory, disk
}

/// Where a result came from.
public enum ResourceSource: String, Hashable, Sendable, CaseIterable {
  /// The memory store; nobody was asked.
  case memory
  /// The durable store; nobody was asked.
  case disk
  /// A store, and the origin confirmed it (304).
  case revalidated
  /// The origin.
  case network
  /// A handler for a URL scheme without a network, such as `file:` or `data:`.
  case schemeHandler
}
