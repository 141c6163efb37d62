/// A set of cache layers, such as those that a request may read.
public struct CacheLayers: OptionSet, Hashable, Sendable {
  /// The bits of the set, one for each layer.
  public let rawValue: UInt8

  /// Creates a set from its bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The memory store.
  public static let memory = CacheLayers(rawValue: 1)
  /// The durable store.
  public static let disk = CacheLayers(rawValue: 2)
  /// Memory and disk.
  public static let all: CacheLayers = [.memory, .disk]
}

extension CacheLayers: CustomStringConvertible {
  /// The layers' names in brackets.
  public var description: String { names([(.memory, "memory"), (.disk, "disk")]) }
}

extension OptionSet where Element == Self {
  /// The names of the options that the set contains, in brackets: `[memory, disk]`.
  func names(_ options: [(Self, String)]) -> String {
    "[\(options.filter { contains($0.0) }.map(\.1).joined(separator: ", "))]"
  }
}

/// The settings of one request.
///
/// Settings that are `nil` come from the manager when the load starts. Components are held strongly while the load runs. With a
/// number out of its range, the load fails with ``CacheError/Code/invalidConfiguration``.
///
/// ```swift
/// let options = RequestOptions {
///   $0.policy = .reload
///   $0.store = .disabled
///   $0.downloader = .adapted { $0.retrying(.standard) }
/// }
/// ```
public struct RequestOptions: Sendable {
  /// The downloader.
  public var downloader: Override<any Downloader>?
  /// The memory store. A request with another durable store than the manager's has none, unless this is `.use`.
  public var memory: Override<any MemoryStoring>?
  /// The durable store. With another store than the manager's, the request does not use the manager's memory store either.
  ///
  /// Stores with equal `id`s are the same store.
  public var store: Override<any CacheStore>?
  /// The validator. Without one, the load considers only the time to live. Requests with a validator do not use a response that
  /// was stored without one.
  public var validator: Override<any ResponseValidator>?
  /// The observer.
  public var observer: Override<any LoadObserver>?
  /// The clock.
  public var clock: (any CacheClock)?
  /// The interceptor, which changes or refuses the load's requests.
  public var interceptor: Override<RequestInterceptor>?
  /// Hooks around the load's downloader, or `nil` for none. They see a request and its retries as one. Hooks on the engine
  /// (``Downloader/hooked(by:)``) see each attempt.
  ///
  /// The load does not share its requests with other loads, and its failures do not count for the interval of
  /// ``LoadPolicy/revalidate(atMostEvery:showCachedAfter:)``. Hooks that replace bytes need a ``key`` or a ``partition`` of their
  /// own, because the cache stores what they return.
  public var hooks: DownloaderHooks?
  /// The sources to try, in this order, if the original cannot be loaded. They apply only to GET and HEAD.
  public var alternatives: [AlternativeSource] = []
  /// The executor on which values are decoded and processed, such as a ``ProcessingExecutor``.
  public var executor: (any TaskExecutor)?
  /// The queue for callbacks.
  public var callbackQueue: CallbackQueue?
  /// The policy that decides when a stored response is used.
  public var policy: LoadPolicy?
  /// The stored responses that may be used if the load fails.
  public var staleFallback: StaleFallback?
  /// The resource's identity in the cache, or `nil` for the manager's key or the URL. Set it for presigned URLs, whose query
  /// changes each time.
  public var key: String?
  /// The partition of the cache, such as one for each signed-in user, or `nil` for the default partition.
  public var partition: String?
  /// The layers that may be read.
  public var reads: CacheLayers = .all
  /// The layers that may be written.
  public var writes: CacheLayers = .all
  /// The policy that decides whether originals, transformed values or both are stored durably.
  public var storagePolicy: StoragePolicy?
  /// The time to live of the response in the stores, or `nil` for the stores' own.
  public var expiration: Expiration?
  /// The priority of the load.
  public var priority: LoadPriority.Level = .normal
  /// The maximum duration of the whole load, greater than zero. A load whose stored response may be used instead of a late one
  /// then has a tenth of this time, at least 100 ms, to read it.
  public var timeout: Duration?
  /// The longest time without received data before the engine gives up, greater than zero, or `nil` for the engine's own.
  public var idleTimeout: Duration?
  /// The statuses that count as success.
  public var acceptedStatuses: AcceptedStatuses?
  /// The maximum number of redirects, at least zero. With 0, a redirect is a response like any other.
  public var redirectLimit: Int?
  /// Whether a redirect may lead from https to http.
  public var allowsInsecureRedirects: Bool?
  /// The networks that the load may use.
  public var networkAccess: NetworkAccess?
  /// The maximum size of a body, in bytes, at least zero.
  public var maximumBodySize: Int64?

  /// Creates options that set nothing.
  public init() {}

  /// Creates options and sets some of them.
  public init(_ change: (inout RequestOptions) -> Void) { change(&self) }
}
