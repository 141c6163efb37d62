/// An event of a load, for logs, metrics and tests.
public enum CacheEvent: Sendable {
  /// The load joined another one, or a step of it. The events of the shared work have the identifier of the other load.
  case joined(url: String, to: LoadID)
  /// A request was sent.
  case requestSent(url: String, conditional: Bool)
  /// The head of a response was received.
  case responseReceived(url: String, status: Int)
  /// A layer stored a response, with this number of bytes.
  case stored(key: CacheKey, layer: CacheLayers, bytes: Int64)
  /// The value of a transform is ready. `key` is the key that it is stored under.
  case transformed(key: CacheKey, origin: ValueOrigin)
  /// A layer could not store or update an entry. The load itself goes on.
  case storeFailed(key: CacheKey, error: CacheError)
  /// A layer could not be read; the load treats it as a miss.
  case readFailed(resource: String, error: CacheError)
  /// The origin confirmed a stored response with a 304.
  case revalidated(key: CacheKey)
  /// A revalidation in the background has failed.
  case backgroundFailed(url: String, error: CacheError)
  /// A load has ended.
  case finished(url: String, source: ResourceSource?, error: CacheError?, duration: Duration)
}

/// An observer of loads.
public protocol LoadObserver: Component {
  /// Receives an event. Called synchronously on any thread, so it must return quickly.
  ///
  /// - Parameters:
  ///   - event: the event.
  ///   - load: the load that it belongs to.
  func observe(_ event: CacheEvent, of load: LoadID)
}

/// The source of a result.
public enum ResourceSource: String, Hashable, Sendable, CaseIterable {
  /// The memory store, without a request.
  case memory
  /// The durable store, without a request.
  case disk
  /// A store, after the origin confirmed the response with a 304.
  case revalidated
  /// The origin.
  case network
  /// A handler for a URL scheme without a network, such as `file:` or `data:`.
  case schemeHandler
}
