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

/// What one request wants otherwise than its manager. What is not set comes from the manager, at the moment of the load.
///
/// Components are held strongly, as long as the load runs.
public struct RequestOptions: Sendable {
  /// Who asks the network.
  public var downloader: Override<any Downloader> = .inherited
  /// The store in memory.
  public var memory: Override<any MemoryStoring> = .inherited
  /// The durable store.
  public var store: Override<any CacheStore> = .inherited
  /// Who decides about HTTP caching; none: a plain cache with a time to live.
  public var validator: Override<any ResponseValidator> = .inherited
  /// Who is told what happens.
  public var observer: Override<any LoadObserver> = .inherited
  /// Time.
  public var clock: (any CacheClock)?
  /// Who changes or refuses the request before the cache is looked at; nil: the manager's.
  public var requestModifier: RequestModifier?
  /// Who decides about redirects.
  public var redirectHandler: Override<RedirectHandler> = .inherited
  /// Where else to ask, in this order, when the original can't be had. For safe methods only: what may change something is sent
  /// to nobody else.
  public var alternatives: [AlternativeSource] = []
  /// The executor on which values are decoded and processed, such as a ``ProcessingQueue``, or `nil` for the manager's.
  public var executor: (any TaskExecutor)?
  /// Where callbacks are called.
  public var callbackQueue: CallbackQueue?
  /// Where the answer may come from.
  public var policy: LoadPolicy?
  /// The resource's identity in the cache in place of its URL: for presigned URLs, whose query changes each time.
  public var key: String?
  /// A part of the cache of its own, for a tenant or a signed-in user.
  public var partition: String?
  /// Layers that may be read.
  public var reads: CacheLayers = .all
  /// Layers that may be written.
  public var writes: CacheLayers = .all
  /// What of the load goes into the durable store; nil: the manager's.
  public var storagePolicy: StoragePolicy?
  /// The stores' time to live for the answer.
  public var expiration: Expiration?
  /// How urgent the load is.
  public var priority: LoadPriority.Level = .normal
  /// How long the whole load may take; nil: the manager's.
  public var timeout: Duration?
  /// How long nothing may come before the engine gives up; nil: the engine's.
  public var idleTimeout: Duration?
  /// Statuses that are a success; nil: the manager's (200 to 299).
  public var acceptedStatuses: AcceptedStatuses?
  /// How many redirects are followed; 0: a redirect is an answer like any other. nil: the manager's.
  public var redirectLimit: Int?
  /// Whether a redirect may lead from https to http; nil: the manager's.
  public var allowsInsecureRedirects: Bool?
  /// The networks that may be used; nil: the manager's.
  public var networkAccess: NetworkAccess?
  /// The largest body that is taken, in bytes; nil: the manager's.
  public var maximumBodySize: Int64?

  /// Everything as the manager has it.
  public init() {}

  /// Everything as the manager has it, but for what `change` sets.
  ///
  /// ```swift
  /// let options = RequestOptions { $0.policy = .reload }
  /// ```
  public init(_ change: (inout RequestOptions) -> Void) { change(&self) }
}
