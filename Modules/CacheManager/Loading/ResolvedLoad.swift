internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A request with every component settled: what the caller set, else what the manager has.
struct ResolvedLoad: Sendable {
  var head: HTTPRequest
  var url: URL
  var body: RequestBody?
  var downloader: (any Downloader)?
  var isProvided: Bool
  /// Where else to ask; empty for the load of an alternative.
  var alternatives: [ResolvedAlternative] = []
  /// What the load is, or stands in, for: see ``Standing``.
  var standing = Standing.original
  var memory: (any MemoryStoring)?
  var store: (any CacheStore)?
  var validator: (any ResponseValidator)?
  var observer: (any LoadObserver)?
  var redirectHandler: RedirectHandler?
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
  /// Where the bytes go.
  var target = BodyTarget.memory
  /// What users remove while the load runs.
  let removals: RemovalEpoch

  /// For whose sake somebody is asked.
  enum Standing {
    /// The resource's own.
    case original
    /// The original's, under whose name the answer is kept: what is stored there is no word of this server's.
    case mirror
    /// The original's, but the answer is kept as what it is.
    case lowData
  }

  init(
    _ request: ResourceRequest, _ manager: ResourceManager.Configuration, _ removals: RemovalEpoch
  ) throws(CacheError) {
    self.removals = removals
    let options = request.options
    let source = try Source(request.url, request, headerFields: request.headerFields, manager)
    head = source.head
    url = source.url
    downloader = source.downloader
    isProvided = source.isProvided
    body = request.body
    partition = options.partition
    resource = ResourceID.make(
      uri: ResourceID.uri(of: head) ?? url.absoluteString, key: options.key, partition: options.partition)
    memory = options.memory.resolved(manager.memory)
    store = options.store.resolved(manager.store)
    validator = options.validator.resolved(manager.validator)
    observer = options.observer.resolved(manager.observer)
    redirectHandler = options.redirectHandler.resolved(manager.redirectHandler)
    clock = options.clock ?? manager.clock
    clockIdentity = options.clock.map { ComponentID.unique(type(of: $0)) }
    executor = options.executor ?? manager.executor
    callbackQueue = options.callbackQueue ?? manager.callbackQueue
    policy = options.policy ?? manager.policy
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
    settleLayers()
    if !options.alternatives.isEmpty { settle(options.alternatives, request, manager) }
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
  func asking(_ source: Source, as kind: AlternativeSource.Kind) -> ResolvedLoad {
    var load = self
    (load.head, load.url) = (source.head, source.url)
    (load.downloader, load.isProvided) = (source.downloader, source.isProvided)
    load.alternatives = []
    switch kind {
    case .mirror: load.standing = .mirror
    case .lowData:
      load.standing = .lowData
      load.resource = ResourceID.make(
        uri: ResourceID.uri(of: source.head) ?? source.url.absoluteString, partition: partition)
    }
    return load
  }

  /// What the caller asked for, as text: in errors and events.
  var address: String { url.address }

  var bodyTooLarge: CacheError {
    CacheError(.bodyTooLarge, reason: "the body is larger than the \(maximumBodySize) bytes that this load takes")
  }

  /// Whether an answer may be a load's result: its status is accepted, and it is no redirect that is to be followed.
  func isResult(_ response: HTTPResponse) -> Bool {
    acceptedStatuses.contains(response.status.code) && (redirectLimit == 0 || !Redirect.leads(response))
  }

  /// The resource of a request. The caller's own key stands for what was asked for, not for where a redirect leads; but wherever a mirror leads to, it
  /// stands in for what was asked for.
  func resource(of request: HTTPRequest, isFirstHop: Bool) -> String {
    if isFirstHop || standing == .mirror { return resource }
    return ResourceID.make(uri: ResourceID.uri(of: request) ?? url.absoluteString, partition: partition)
  }

  /// Where the bytes of a stored answer came from: the URL that is asked, but for what an alternative brought, or another URL under the caller's own key.
  func origin(of metadata: StoredMetadata, for request: HTTPRequest, at url: URL) -> URL {
    let stored = metadata.request
    guard stored.path != request.path || stored.authority != request.authority || stored.scheme != request.scheme,
      ResourceID.uri(of: stored) != ResourceID.uri(of: request)
    else { return url }
    return stored.absoluteURL ?? url
  }

  func observe(_ event: @autoclosure () -> CacheEvent) {
    if let observer { observer.observe(event()) }
  }

  var managerIsClosed: CacheError { CacheError(.closed, reason: "the manager has been closed", url: address) }

  /// Tells of a revalidation that may have nobody left to tell: it failed, or nobody answered.
  func observeBackground(_ result: Result<Fetched, CacheError>) {
    switch result {
    case .failure(let error):
      if !error.isCancellation { observe(.backgroundFailed(url: address, error: error)) }
    case .success(let fetched):
      guard fetched.validation == .failed else { return }
      observe(
        .backgroundFailed(
          url: address, error: CacheError(.offline, reason: "nobody answered; the stored answer stays", url: address)))
    }
  }

  func observeEnd<Value: Sendable>(_ result: Result<Resource<Value>, CacheError>, startedAt start: Duration) {
    switch result {
    case .success(let resource):
      observe(.finished(url: address, source: resource.source, error: nil, duration: clock.uptime - start))
    case .failure(let error):
      observe(.finished(url: address, source: nil, error: error, duration: clock.uptime - start))
    }
  }
}
