/// An event of a load, for logs, metrics and tests.
///
/// A load that memory, or a store that can be read without waiting, answers has one event, ``hit(url:source:duration:)``. Every
/// other load begins with ``started(url:)``, has its result with ``finished(url:source:error:duration:)``, and ends with
/// ``workEnded``, exactly once each. A load whose request is invalid, for example because of its URL, has no event.
///
/// Work can go on after the result: a revalidation in the background, a commit to a slow store, a body that an HTTP caller still
/// reads. Its events have the identifier of the load.
public enum CacheEvent: Sendable {
  /// A store answered the load without waiting. A fresh response that `cachedInMemory` returns is such a load too.
  case hit(url: LoadURL, source: ResourceSource, duration: Duration)
  /// The load has started and could not be answered without waiting. Sent in the task of the caller. The load of a prefetch
  /// starts in the task of the load before it.
  case started(url: LoadURL)
  /// The load joined another one, or a step of it. The events of the shared work have the identifier of the other load.
  case joined(url: LoadURL, to: LoadID)
  /// A request was sent. `conditional` states whether it asks about a stored response. `transfer` is a number that the events of
  /// this transfer share, and no other transfer of the process has.
  case requestSent(url: LoadURL, conditional: Bool, transfer: Int)
  /// The head of a response was received.
  case responseReceived(url: LoadURL, status: Int, transfer: Int)
  /// The transfer of a request has ended: with the last byte of the body, or with an error. The error is a cancellation if the
  /// body was not wanted. Sent exactly once for each ``requestSent(url:conditional:transfer:)``. `metrics` are those of this
  /// transfer alone.
  indirect case transferEnded(url: LoadURL, metrics: TransferMetrics, error: CacheError?, transfer: Int)
  /// A layer stored a response or a transformed value, with this number of bytes. `duration` is the time that the layer took to
  /// complete the entry after its last byte. In memory it is zero.
  case stored(key: CacheKey, layer: CacheLayers, bytes: Int64, duration: Duration)
  /// The value of a transform is ready. `key` is the key that it is stored under. `duration` includes the time that the work has
  /// waited for other work.
  case transformed(key: CacheKey, origin: ValueOrigin, duration: Duration)
  /// A layer could not store or update an entry. The load itself goes on.
  case storeFailed(key: CacheKey, error: CacheError)
  /// A layer could not be read; the load treats it as a miss.
  case readFailed(resource: String, error: CacheError)
  /// The origin confirmed a stored response with a 304.
  case revalidated(key: CacheKey)
  /// A revalidation in the background has failed.
  case backgroundFailed(url: LoadURL, error: CacheError)
  /// The load has its result. For `respond(to:)`, its response was returned, and the body may still be on its way.
  case finished(url: LoadURL, source: ResourceSource?, error: CacheError?, duration: Duration)
  /// All work of the load has ended. This is its last event. It can come a moment after the result.
  case workEnded
}

/// An observer of loads, set in the configuration of a manager or in the options of one request.
public protocol LoadObserver: Component {
  /// Receives an event. Called synchronously on any thread, so it must return quickly.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - load: The load that it belongs to.
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
