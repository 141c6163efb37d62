private import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An event of a load, for logs, metrics and tests.
///
/// A load that is served from memory, or from a store that can be read without waiting, has one event:
/// ``hit(url:source:duration:)``. Every other load sends ``started(url:)``,
/// ``finished(url:source:fallbackReason:error:duration:)`` and ``workEnded`` exactly once each. A load whose request is invalid,
/// for example because of its URL, has no event. A lookup with `cached` is a load only if it finds a response.
///
/// Work can continue after the result: a revalidation in the background, or a commit to a slow store. Its events have the
/// identifier of the load.
public enum CacheEvent: Sendable {
  /// A load was served from a store without waiting. A fresh response in memory that `cachedInMemory` or `cached` returns also
  /// counts as a load.
  case hit(url: LoadURL, source: ResourceSource, duration: Duration)
  /// A load started and could not be served without waiting. The event is sent in the task of the caller. The load of a prefetch
  /// starts in the task of the load before it.
  case started(url: LoadURL)
  /// The load joined another one, or one of its steps. The events of the shared work have the identifier of the other load.
  case joined(url: LoadURL, to: LoadID)
  /// A request was sent. `reason` is the reason why the cache did not serve a stored response, and `conditional` states whether
  /// the request revalidates one. `transfer` is a number that all events of this transfer share. It is unique in the process.
  case requestSent(url: LoadURL, reason: ForwardReason, conditional: Bool, transfer: Int)
  /// The header of a response was received.
  case responseReceived(url: LoadURL, status: Int, transfer: Int)
  /// A transfer ended, with the last byte of the body or with an error. The error is a cancellation if the body was not needed.
  /// Sent exactly once for each ``requestSent(url:reason:conditional:transfer:)``. `metrics` covers this transfer only.
  indirect case transferEnded(url: LoadURL, metrics: TransferMetrics, error: CacheError?, transfer: Int)
  /// A layer stored a response or a transformed value of `bytes` bytes. `duration` is the time that the layer needed to complete
  /// the entry after its last byte. It is zero in memory.
  case stored(key: CacheKey, layer: CacheLayers, bytes: Int64, duration: Duration)
  /// The value of a transform is ready. `key` is the key that it is stored under. `duration` includes the time that the work
  /// waited for other work.
  case transformed(key: CacheKey, origin: ValueOrigin, duration: Duration)
  /// A layer could not store, update or remove an entry. The load itself continues.
  case storeFailed(key: CacheKey, error: CacheError)
  /// A layer could not be read, or the fleet could not be reached. The load continues without it.
  case readFailed(resource: String, error: CacheError)
  /// The origin confirmed a stored response with a 304.
  case revalidated(key: CacheKey)
  /// A revalidation in the background failed.
  case backgroundFailed(url: LoadURL, error: CacheError)
  /// The load has its result: a `source`, or an `error`. With a `fallbackReason`, the result is a stored response that is served
  /// because the origin failed.
  ///
  /// For `respond(to:)`, the body has ended too. If it broke off, `error` is the reason. If its reader stopped before the end,
  /// `error` is a cancellation. `duration` is always the time to the result, which is the head for `respond(to:)`.
  case finished(url: LoadURL, source: ResourceSource?, fallbackReason: CacheError?, error: CacheError?, duration: Duration)
  /// All work of the load has ended. It is the load's last event and can arrive shortly after the result.
  case workEnded
}

/// An observer of loads, set in the configuration of a manager or in the options of one request.
///
/// ```swift
/// struct RequestLog: LoadObserver {
///   let id = ComponentID.unique(RequestLog.self)
///
///   func observe(_ event: CacheEvent, of load: LoadID) {
///     if case .requestSent(let url, let reason, _, _) = event { print(url.withoutQuery, reason) }
///   }
/// }
/// configuration.observer = RequestLog()
/// ```
public protocol LoadObserver: Component {
  /// Receives an event. Called synchronously on any thread, so it must return quickly.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - load: The load that it belongs to.
  func observe(_ event: CacheEvent, of load: LoadID)

  /// Receives the start of a view's wait for its image. Called on the main thread. Does nothing by default.
  ///
  /// The views of CacheUI and `ImageModel` call it for a view that appears without its image, or is given another request. A view
  /// that shows its image from memory at once does not wait, and neither does one that shows it in another size. A view without a
  /// size waits until its layout.
  ///
  /// - Parameters:
  ///   - wait: The identifier of the wait. No load has it.
  ///   - url: The URL of the image.
  func viewWaits(_ wait: LoadID, for url: LoadURL)

  /// Receives the end of a wait, once for each call of ``viewWaits(_:for:)``. Called on any thread. Does nothing by default.
  ///
  /// - Parameters:
  ///   - wait: The identifier of the wait.
  ///   - url: The URL of the image.
  ///   - result: The source of the image that is shown, which may be stale, or an error. The error is a cancellation if the view
  ///     disappeared or was given another request.
  ///   - duration: The time of the wait.
  func viewEndsWait(_ wait: LoadID, for url: LoadURL, with result: Result<ResourceSource, CacheError>, after duration: Duration)
}

extension LoadObserver {
  public func viewWaits(_ wait: LoadID, for url: LoadURL) {}
  public func viewEndsWait(
    _ wait: LoadID, for url: LoadURL, with result: Result<ResourceSource, CacheError>, after duration: Duration
  ) {}
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

/// The identifier of a load. It differs from that of every other load of this process, including loads of the same URL.
///
/// Redirects, retries, alternative sources and a revalidation in the background belong to the load that caused them.
public struct LoadID: Hashable, Sendable, CustomStringConvertible {
  /// The number of the load. Later loads have greater numbers.
  package let number: UInt64

  /// Creates a unique identifier.
  public init() { number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue }

  private static let last = Atomic<UInt64>(0)

  /// The number of the load, such as `42`.
  public var description: String { "\(number)" }
}

/// The URL of an event. The text has no user information, but it includes the query. Use ``withoutQuery`` for logs.
///
/// The text is computed on demand, because most observers only count and a hit in memory takes less time than the text.
public struct LoadURL: Hashable, Sendable, CustomStringConvertible {
  private let url: URL

  /// Creates the URL of an event, for tests.
  public init(_ url: URL) { self.url = url }

  /// The URL without user information. A very long URL, such as a `data:` URL, is shortened.
  public var description: String { url.address }

  /// The URL without user information, query and fragment, which may contain signatures and tokens. For a `data:` URL, the part
  /// before the comma.
  public var withoutQuery: String {
    let text = url.address
    let end: Character = url.scheme?.lowercased() == "data" ? "," : "?"
    return String(text.prefix { $0 != end && $0 != "#" })
  }
}

extension URL {
  /// The URL as text for errors and events, without user information. Very long URLs, such as `data:` URLs, are shortened.
  package var address: String {
    var text = absoluteString
    if user() != nil, let colon = text.firstIndex(of: ":"), let at = text[colon...].firstIndex(of: "@") {
      text = "\(text[...colon])//\(text[text.index(after: at)...])"
    }
    return text.utf8.count <= 2_048 ? text : "\(text.prefix(80))… (\(text.utf8.count) bytes)"
  }

  /// Returns a text that is not a URL for an error. The text cannot be parsed, so all of it between the scheme and the last `@`
  /// counts as user information.
  static func address(ofInvalid text: String) -> String {
    guard let at = text.lastIndex(of: "@") else { return text }
    let scheme = text[..<at].firstRange(of: "//").map { text[..<$0.upperBound] } ?? ""
    return "\(scheme)\(text[text.index(after: at)...])"
  }
}

/// The origin of a load's value. ``ResourceSource`` states the origin of the response.
public enum ValueOrigin: String, Hashable, Sendable, CaseIterable {
  /// The load asked for the bytes, which need no transform.
  case original
  /// The value was in memory.
  case memory
  /// The value was decoded from a stored variant on disk.
  case disk
  /// The value was made from the original's bytes by the transform.
  case transformed
}
