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
  var downloader: (any Downloader)?
  var isProvided: Bool
  var memory: (any MemoryStoring)?
  var store: (any CacheStore)?
  var validator: (any ResponseValidator)?
  var observer: (any LoadObserver)?
  var clock: any CacheClock
  /// Loads with a clock of their own share nothing: clocks can't be compared.
  private var clockIdentity: ComponentID?
  var executor: (any TaskExecutor)?
  var callbackQueue: CallbackQueue
  var policy: LoadPolicy
  var key: String?
  var partition: String?
  var reads: CacheLayers
  var writes: CacheLayers
  var expiration: Expiration?
  var priority: LoadPriority.Level
  var timeout: Duration?
  var idleTimeout: Duration?
  var acceptedStatuses: AcceptedStatuses
  var redirectLimit: Int
  var maximumBodySize: Int64
  /// Where the bytes go.
  var target = BodyTarget.memory
  /// What users remove while the load runs.
  let removals: RemovalEpoch

  init(
    _ request: ResourceRequest, _ manager: ResourceManager.Configuration, _ removals: RemovalEpoch
  ) throws(CacheError) {
    self.removals = removals
    let options = request.options
    head = try HTTPRequest(resource: request.url, method: request.method, headerFields: request.headerFields)
    url = request.url
    let scheme = head.scheme ?? ""
    let isHTTP = scheme == "http" || scheme == "https"
    let provider = isHTTP ? nil : manager.providers[scheme]
    downloader = options.downloader.resolved(provider ?? (isHTTP ? manager.downloader : nil))
    if case .inherited = options.downloader { isProvided = provider != nil } else { isProvided = false }
    memory = options.memory.resolved(manager.memory)
    store = options.store.resolved(manager.store)
    validator = options.validator.resolved(manager.validator)
    observer = options.observer.resolved(manager.observer)
    clock = options.clock ?? manager.clock
    clockIdentity = options.clock.map { ComponentID.unique(type(of: $0)) }
    executor = options.executor ?? manager.executor
    callbackQueue = options.callbackQueue ?? manager.callbackQueue
    policy = options.policy ?? manager.policy
    key = options.key
    partition = options.partition
    reads = options.reads
    writes = options.writes
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
    expiration = options.expiration
    priority = options.priority
    timeout = options.timeout ?? manager.timeout
    idleTimeout = options.idleTimeout
    acceptedStatuses = options.acceptedStatuses ?? manager.acceptedStatuses
    redirectLimit = options.redirectLimit ?? manager.redirectLimit
    maximumBodySize = options.maximumBodySize ?? manager.maximumBodySize
  }

  /// What the caller asked for, as text: in errors and events.
  var address: String { Self.address(of: url) }

  /// A URL as it may be told: without user information, and not longer than a line (a `data:` URL carries its whole resource).
  static func address(of url: URL) -> String {
    var text = url.absoluteString
    if url.user() != nil, let colon = text.firstIndex(of: ":"), let at = text[colon...].firstIndex(of: "@") {
      text = "\(text[...colon])//\(text[text.index(after: at)...])"
    }
    return text.utf8.count <= 2_048 ? text : "\(text.prefix(80))… (\(text.utf8.count) bytes)"
  }

  var bodyTooLarge: CacheError {
    CacheError(.bodyTooLarge, reason: "the body is larger than the \(maximumBodySize) bytes that this load takes")
  }

  /// Whether an answer may be a load's result: its status is accepted, and it is no redirect that is to be followed.
  func isResult(_ response: HTTPResponse) -> Bool {
    acceptedStatuses.contains(response.status.code) && (redirectLimit == 0 || !Redirect.leads(response))
  }

  /// The resource of a request. The caller's own key stands for what was asked for, not for where a redirect leads.
  func resource(of request: HTTPRequest, isFirstHop: Bool) -> String {
    ResourceID.make(
      uri: ResourceID.uri(of: request) ?? url.absoluteString, key: isFirstHop ? key : nil, partition: partition)
  }

  /// Equal for loads that may share one piece of work: everything that can change the answer, or where it is kept.
  var flightKey: FlightKey {
    FlightKey(
      head: head, resource: resource(of: head, isFirstHop: true), policy: policy, reads: reads, writes: writes,
      expiration: expiration, acceptedStatuses: acceptedStatuses, redirectLimit: redirectLimit,
      maximumBodySize: maximumBodySize, idleTimeout: idleTimeout,
      components: [downloader?.id, memory?.id, store?.id, validator?.id, observer?.id, clockIdentity])
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

/// See ``ResolvedLoad/flightKey``.
struct FlightKey: Hashable, Sendable {
  var head: HTTPRequest
  var resource: String
  var policy: LoadPolicy
  var reads: CacheLayers
  var writes: CacheLayers
  var expiration: Expiration?
  var acceptedStatuses: AcceptedStatuses
  var redirectLimit: Int
  var maximumBodySize: Int64
  var idleTimeout: Duration?
  var components: [ComponentID?]
}
