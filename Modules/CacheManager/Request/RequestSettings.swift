internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What a load is made of: a request with every component settled, by the caller, else by the manager.
struct RequestSettings: Sendable {
  /// The identifier of the load in the events that an observer receives.
  let id: LoadID
  var head: HTTPRequest
  /// Nil: as ``head`` names it; an exchange needs it for errors and events alone.
  private var statedURL: URL?
  var body: RequestBody?
  var downloader: (any Downloader)?
  var isFromSchemeHandler: Bool
  /// Where else to ask; empty for the load of an alternative.
  var alternatives: [ResolvedAlternative] = []
  /// The role of the server that is asked.
  var role = SourceRole.original
  var memory: (any MemoryStoring)?
  var store: (any CacheStore)?
  var validator: (any ResponseValidator)?
  var observer: (any LoadObserver)?
  /// The interceptor, if it has a say about redirects.
  var redirectInterceptor: RequestInterceptor?
  var clock: any CacheClock
  /// Loads with a clock of their own share nothing: clocks can't be compared.
  let clockIdentity: ComponentID?
  var executor: (any TaskExecutor)?
  var callbackQueue: CallbackQueue
  var policy: LoadPolicy
  var partition: String?
  /// What the answer is filed under, but for redirects.
  private(set) var resource: String
  var reads: CacheLayers
  var writes: CacheLayers
  var expiration: Expiration?
  var priority: LoadPriority.Level
  var timeout: Duration?
  var idleTimeout: Duration?
  var acceptedStatuses: AcceptedStatuses
  var redirectLimit: Int
  var allowsInsecureRedirects: Bool
  var networkAccess: NetworkAccess
  var maximumBodySize: Int64
  let maximumBodyInMemory: Int64
  /// The place that the bytes go to. A stream is for a caller that speaks HTTP: its conditions, ranges and stored parts count,
  /// and methods, statuses and redirects are its own affair.
  var destination = BodyDestination.memory
  /// The representation that the waiters want, or `nil` for the bytes and a stored original.
  var representation: RequestedRepresentation?
  let storagePolicy: StoragePolicy
  /// What users remove while the load runs.
  let invalidations: InvalidationLog
  /// How long the load waits for the durable store to take what it brings.
  let writeDeadline: StoreWriteDeadline
  /// How much memory loads take at once.
  let budget: MemoryBudget
  /// Whether another load waits for this one, which has its place in the budget already.
  var isNested = false

  /// The role of the server that is asked.
  enum SourceRole {
    /// The resource's own.
    case original
    /// The original's, under whose name the answer is kept: what is stored there is no word of this server's.
    case mirror
    /// The original's, but the answer is kept as what it is.
    case lowData
  }

  init(
    _ request: ResourceRequest, _ manager: ResourceManager.Configuration, _ core: LoadCoordinator, id: LoadID = LoadID()
  ) throws(CacheError) {
    let source = try RequestTarget(request.url, request, headerFields: request.headerFields, manager)
    self.init(source, body: request.body, request.options, manager, core, id: id)
    if !request.options.alternatives.isEmpty { settle(request.options.alternatives, request, manager) }
  }

  private init(
    _ source: RequestTarget, body: RequestBody? = nil, _ options: RequestOptions, _ manager: ResourceManager.Configuration,
    _ core: LoadCoordinator, id: LoadID = LoadID()
  ) {
    self.id = id
    invalidations = core.invalidations
    writeDeadline = core.writeDeadline
    budget = core.budget
    head = source.head
    statedURL = source.url
    downloader = source.downloader
    isFromSchemeHandler = source.isFromSchemeHandler
    self.body = body
    partition = options.partition
    resource = Self.resource(of: source, options)
    memory = options.memory.resolved(manager.memory)
    store = options.store.resolved(manager.store)
    validator = options.validator.resolved(manager.validator)
    observer = options.observer.resolved(manager.observer)
    redirectInterceptor = source.interceptor.flatMap { $0.interceptsRedirects ? $0 : nil }
    clock = options.clock ?? manager.clock
    clockIdentity = options.clock.map { ComponentID.unique(type(of: $0)) }
    executor = options.executor ?? manager.executor
    callbackQueue = options.callbackQueue ?? manager.callbackQueue
    policy = options.policy ?? manager.policy
    storagePolicy = options.storagePolicy ?? manager.storagePolicy
    reads = options.reads
    writes = options.writes
    expiration = options.expiration
    priority = options.priority
    timeout = options.timeout ?? manager.timeout
    idleTimeout = options.idleTimeout
    acceptedStatuses = options.acceptedStatuses ?? manager.acceptedStatuses
    redirectLimit = options.redirectLimit ?? manager.redirectLimit
    allowsInsecureRedirects = options.allowsInsecureRedirects ?? manager.allowsInsecureRedirects
    networkAccess = options.networkAccess ?? manager.networkAccess
    maximumBodySize = options.maximumBodySize ?? manager.maximumBodySize
    maximumBodyInMemory = manager.maximumBodyInMemory
    settleLayers()
  }

  private static func resource(of source: RequestTarget, _ options: RequestOptions) -> String {
    ResourceID.make(
      uri: ResourceID.uri(of: source.head) ?? source.url?.absoluteString ?? "", key: options.key, partition: options.partition)
  }

  /// What is asked for.
  var url: URL {
    // A head that no URL can be made of has one beside it.
    get { statedURL ?? head.absoluteURL ?? URL(filePath: "/") }
    set { statedURL = newValue }
  }

  /// An exchange: the request goes out as it stands.
  init(
    exchange request: HTTPRequest, hasBody: Bool, _ options: RequestOptions, _ manager: ResourceManager.Configuration,
    _ core: LoadCoordinator
  ) throws(CacheError) {
    if let source = RequestTarget(plain: request, options, manager) {
      self.init(source, options, manager, core)
    } else {
      try self.init(modified: request, options, manager, core)
    }
    destination = .stream
    if hasBody, head.method == .get || head.method == .head { leaveStoresAlone() }
  }

  /// An exchange whose target has to be looked at, or changed.
  private init(
    modified request: HTTPRequest, _ options: RequestOptions, _ manager: ResourceManager.Configuration, _ core: LoadCoordinator
  ) throws(CacheError) {
    guard let url = request.absoluteURL, url.scheme != nil, ResourceID.uri(of: request) != nil else {
      throw CacheError(.invalidURL, reason: "the request has no absolute target: scheme, authority and path")
    }
    let interceptor = options.interceptor.resolved(manager.interceptor)
    var options = options
    options.alternatives = []
    // It sees the request itself, below, and not the one that stands for it here.
    options.interceptor = interceptor.map { .use($0.withoutLookups) } ?? .disabled
    try self.init(ResourceRequest(url, method: request.method, options: options), manager, core)
    head = request
    try interceptor?.willLookUp(&head)
    try head.convertHost()
    resource = ResourceID.make(
      uri: ResourceID.uri(of: head) ?? url.absoluteString, key: options.key, partition: options.partition)
  }

  private mutating func leaveStoresAlone() {
    (memory, store) = (nil, nil)
    settleLayers()
  }

  private mutating func settleLayers() {
    if body != nil, head.method == .get {
      // What a body asks for can't be told from the resource's name: such an answer is nobody else's (RFC 9110 §9.3.1).
      (memory, store) = (nil, nil)
    }
    switch policy {
    case .reload: reads = []
    case .memoryElseReload: reads.remove(.disk)
    case .standard, .cacheFirst, .revalidate, .cacheOnly, .staleWhileRevalidate: break
    }
    if memory == nil {
      reads.remove(.memory)
      writes.remove(.memory)
    }
    if store == nil {
      reads.remove(.disk)
      writes.remove(.disk)
    }
  }

  private mutating func settle(
    _ sources: [AlternativeSource], _ request: ResourceRequest, _ manager: ResourceManager.Configuration
  ) {
    // What may have changed something at one server is not asked of another.
    guard head.method == .get || head.method == .head else { return }
    alternatives = sources.map { ResolvedAlternative($0, request, manager) }
  }

  /// The load of an alternative in the original's place.
  func asking(_ source: RequestTarget, as alternative: AlternativeSource) -> RequestSettings {
    var load = self
    (load.head, load.statedURL) = (source.head, source.url)
    (load.downloader, load.isFromSchemeHandler) = (source.downloader, source.isFromSchemeHandler)
    load.alternatives = []
    switch alternative {
    case .mirror: load.role = .mirror
    case .lowData:
      load.role = .lowData
      load.resource = ResourceID.make(
        uri: ResourceID.uri(of: source.head) ?? load.url.absoluteString, partition: partition)
    }
    return load
  }
}
