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
  public var downloader: Override<any Downloader>? {
    get { storage?.values.downloader }
    set { unshared().values.downloader = newValue }
  }
  /// The memory store. A request with another durable store than the manager's has none, unless this is `.use`.
  public var memory: Override<any MemoryStoring>? {
    get { storage?.values.memory }
    set { unshared().values.memory = newValue }
  }
  /// The durable store. With another store than the manager's, the request does not use the manager's memory store either.
  ///
  /// Stores with equal `id`s are the same store.
  public var store: Override<any CacheStore>? {
    get { storage?.values.store }
    set { unshared().values.store = newValue }
  }
  /// The validator. Without one, the load considers only the time to live. Requests with a validator do not use a response that
  /// was stored without one.
  public var validator: Override<any ResponseValidator>? {
    get { storage?.values.validator }
    set { unshared().values.validator = newValue }
  }
  /// The observer.
  public var observer: Override<any LoadObserver>? {
    get { storage?.values.observer }
    set { unshared().values.observer = newValue }
  }
  /// The clock.
  public var clock: (any CacheClock)? {
    get { storage?.values.clock }
    set { unshared().values.clock = newValue }
  }
  /// The interceptor, which changes or refuses the load's requests.
  public var interceptor: Override<RequestInterceptor>? {
    get { storage?.values.interceptor }
    set { unshared().values.interceptor = newValue }
  }
  /// Hooks around the load's downloader, or `nil` for none. They see a request and its retries as one. Hooks on the engine
  /// (``Downloader/hooked(by:)``) see each attempt.
  ///
  /// The load does not share its requests with other loads, and its failures do not count for the interval of
  /// ``LoadPolicy/revalidate(atMostEvery:showCachedAfter:)``. Hooks that replace bytes need a ``key`` or a ``partition`` of their
  /// own, because the cache stores what they return.
  public var hooks: DownloaderHooks? {
    get { storage?.values.hooks }
    set { unshared().values.hooks = newValue }
  }
  /// The sources to try, in this order, if the original cannot be loaded. They apply only to GET and HEAD.
  public var alternatives: [AlternativeSource] {
    get { storage?.values.alternatives ?? [] }
    _modify { yield &unshared().values.alternatives }
  }
  /// The executor on which values are decoded and processed, such as a ``ProcessingExecutor``.
  public var executor: (any TaskExecutor)? {
    get { storage?.values.executor }
    set { unshared().values.executor = newValue }
  }
  /// The queue for callbacks.
  public var callbackQueue: CallbackQueue? {
    get { storage?.values.callbackQueue }
    set { unshared().values.callbackQueue = newValue }
  }
  /// The policy that decides when a stored response is used.
  public var policy: LoadPolicy? {
    get { storage?.values.policy }
    set { unshared().values.policy = newValue }
  }
  /// The stored responses that may be used if the load fails.
  public var staleFallback: StaleFallback? {
    get { storage?.values.staleFallback }
    set { unshared().values.staleFallback = newValue }
  }
  /// The resource's identity in the cache, or `nil` for the manager's key or the URL. Set it for presigned URLs, whose query
  /// changes each time.
  public var key: String? {
    get { storage?.values.key }
    set { unshared().values.key = newValue }
  }
  /// The partition of the cache, such as one for each signed-in user, or `nil` for the default partition.
  public var partition: String? {
    get { storage?.values.partition }
    set { unshared().values.partition = newValue }
  }
  /// The layers that may be read.
  public var reads: CacheLayers {
    get { storage?.values.reads ?? .all }
    set { unshared().values.reads = newValue }
  }
  /// The layers that may be written.
  public var writes: CacheLayers {
    get { storage?.values.writes ?? .all }
    set { unshared().values.writes = newValue }
  }
  /// The policy that decides whether originals, transformed values or both are stored durably.
  public var storagePolicy: StoragePolicy? {
    get { storage?.values.storagePolicy }
    set { unshared().values.storagePolicy = newValue }
  }
  /// The time to live of the response in the stores, or `nil` for the stores' own.
  public var expiration: Expiration? {
    get { storage?.values.expiration }
    set { unshared().values.expiration = newValue }
  }
  /// The priority of the load.
  public var priority: LoadPriority.Level {
    get { storage?.values.priority ?? .normal }
    set { unshared().values.priority = newValue }
  }
  /// The maximum duration of the whole load, greater than zero. A load whose stored response may be used instead of a late one
  /// then has a tenth of this time, at least 100 ms, to read it.
  public var timeout: Duration? {
    get { storage?.values.timeout }
    set { unshared().values.timeout = newValue }
  }
  /// The longest time without received data before the engine gives up, greater than zero, or `nil` for the engine's own.
  public var idleTimeout: Duration? {
    get { storage?.values.idleTimeout }
    set { unshared().values.idleTimeout = newValue }
  }
  /// The longest time that the load waits for the durable store to write, at least zero. With `.disabled`, it waits until its
  /// own writes have ended, so it never ends if the store hangs and no task cancels it. It does not wait for the writes of
  /// another load, whose response it may find in memory. A negative result of `.adapted` counts as zero.
  ///
  /// ```swift
  /// let stored = RequestOptions { $0.storeWriteTimeout = .disabled }
  /// ```
  public var storeWriteTimeout: Override<Duration>? {
    get { storage?.values.storeWriteTimeout }
    set { unshared().values.storeWriteTimeout = newValue }
  }
  /// The longest time that the load waits for one read of the durable store, at least zero. With `.disabled`, it waits until the
  /// read has ended. A negative result of `.adapted` counts as zero.
  public var storeReadTimeout: Override<Duration>? {
    get { storage?.values.storeReadTimeout }
    set { unshared().values.storeReadTimeout = newValue }
  }
  /// The statuses that count as success.
  public var acceptedStatuses: AcceptedStatuses? {
    get { storage?.values.acceptedStatuses }
    set { unshared().values.acceptedStatuses = newValue }
  }
  /// The maximum number of redirects, at least zero. With 0, a redirect is a response like any other.
  public var redirectLimit: Int? {
    get { storage?.values.redirectLimit }
    set { unshared().values.redirectLimit = newValue }
  }
  /// Whether a redirect may lead from https to http.
  public var allowsInsecureRedirects: Bool? {
    get { storage?.values.allowsInsecureRedirects }
    set { unshared().values.allowsInsecureRedirects = newValue }
  }
  /// The networks that the load may use.
  public var networkAccess: NetworkAccess? {
    get { storage?.values.networkAccess }
    set { unshared().values.networkAccess = newValue }
  }
  /// The maximum size of a body, in bytes, at least zero.
  public var maximumBodySize: Int64? {
    get { storage?.values.maximumBodySize }
    set { unshared().values.maximumBodySize = newValue }
  }

  /// Creates options that set nothing.
  public init() {}

  /// Creates options and sets some of them.
  public init(_ change: (inout RequestOptions) -> Void) { change(&self) }

  /// The values of all options, with their defaults. A new option is a line here and a property above, which repeats the default
  /// if it is not `nil`.
  package struct Values: Sendable {
    package var downloader: Override<any Downloader>?
    package var memory: Override<any MemoryStoring>?
    package var store: Override<any CacheStore>?
    package var validator: Override<any ResponseValidator>?
    package var observer: Override<any LoadObserver>?
    package var clock: (any CacheClock)?
    package var interceptor: Override<RequestInterceptor>?
    package var hooks: DownloaderHooks?
    package var alternatives: [AlternativeSource] = []
    package var executor: (any TaskExecutor)?
    package var callbackQueue: CallbackQueue?
    package var policy: LoadPolicy?
    package var staleFallback: StaleFallback?
    package var key: String?
    package var partition: String?
    package var reads: CacheLayers = .all
    package var writes: CacheLayers = .all
    package var storagePolicy: StoragePolicy?
    package var expiration: Expiration?
    package var priority: LoadPriority.Level = .normal
    package var timeout: Duration?
    package var idleTimeout: Duration?
    package var storeWriteTimeout: Override<Duration>?
    package var storeReadTimeout: Override<Duration>?
    package var acceptedStatuses: AcceptedStatuses?
    package var redirectLimit: Int?
    package var allowsInsecureRedirects: Bool?
    package var networkAccess: NetworkAccess?
    package var maximumBodySize: Int64?
  }

  /// The values of options of which at least one was set.
  ///
  /// Proof of `@unchecked Sendable`: the values are changed only while a single copy of the options refers to them. The compiler
  /// therefore need not check the exclusivity of each access.
  package final class Storage: @unchecked Sendable {
    @exclusivity(unchecked) package fileprivate(set) var values: Values

    fileprivate init(_ values: Values) { self.values = values }
  }

  /// The values, or `nil` if no option was ever set, as in most requests. Such options cost no more to pass than a word.
  package private(set) var storage: Storage?

  /// Returns storage that no other copy of the options refers to.
  private mutating func unshared() -> Storage {
    if isKnownUniquelyReferenced(&storage), let storage { return storage }
    let copy = Storage(storage?.values ?? Values())
    storage = copy
    return copy
  }
}

extension RequestOptions: CustomReflectable {
  /// A mirror of all options, with the defaults of those that were not set.
  public var customMirror: Mirror {
    Mirror(self, children: Mirror(reflecting: storage?.values ?? Values()).children.map { ($0.label, $0.value) })
  }
}

/// A request's replacement for a component or a time limit of its manager. A `nil` override means the manager's.
public enum Override<Wrapped: Sendable>: Sendable {
  /// Uses this component.
  case use(Wrapped)
  /// Uses no such component, or no limit.
  case disabled
  /// Uses the component that the closure makes from the manager's. If the manager has no component, the request has none.
  ///
  /// The closure is called for each load, and the options retain it. To keep state across loads, wrap the manager's component
  /// instead. The settings of the component that it returns are not checked.
  ///
  /// ```swift
  /// let patient = RequestOptions { $0.downloader = .adapted { $0.retrying(.standard) } }
  /// ```
  case adapted(@Sendable (Wrapped) -> Wrapped)
}

extension Override {
  /// The component that the request uses in place of the manager's, or `nil` if it has none or adapts the manager's.
  package var replacement: Wrapped? { if case .use(let component) = self { component } else { nil } }
}

extension Optional {
  /// Returns the component in effect, given the manager's.
  @inlinable
  package func resolved<Component>(_ inherited: Component?) -> Component? where Wrapped == Override<Component> {
    switch self {
    case nil: inherited
    case .use(let component)?: component
    case .disabled?: nil
    case .adapted(let change)?: inherited.map(change)
    }
  }
}
