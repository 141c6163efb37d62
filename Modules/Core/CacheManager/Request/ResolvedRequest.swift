internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The settings of a running load behind one reference. Every stage holds them, and copying all settings costs more than some
/// stages do.
@dynamicMemberLookup
final class ResolvedRequest: Sendable {
  let settings: RequestSettings

  init(_ settings: RequestSettings) { self.settings = settings }

  convenience init(_ request: borrowing ResourceRequest, _ core: LoadCoordinator, id: LoadID = LoadID()) throws(CacheError) {
    self.init(try RequestSettings(request, core, id: id))
  }

  /// Creates the request of an HTTP caller, which is sent unchanged.
  convenience init(
    exchange request: HTTPRequest, hasBody: Bool, _ options: RequestOptions, _ core: LoadCoordinator,
    _ onInterimResponse: (@Sendable (HTTPResponse) -> Void)? = nil
  ) throws(CacheError) {
    var settings = try RequestSettings(exchange: request, hasBody: hasBody, options, core)
    settings.onInterimResponse = onInterimResponse
    self.init(settings)
  }

  /// Returns the load with the settings that `change` has changed.
  func with(_ change: (inout RequestSettings) -> Void) -> ResolvedRequest {
    var changed = settings
    changed.isPlain = false
    change(&changed)
    return ResolvedRequest(changed)
  }

  /// Returns the load after a request has failed within the interval of its policy. The interval is the caller's decision, so it
  /// also permits a stored response that the origin wants to be revalidated.
  func after(_ failure: CacheError) -> ResolvedRequest {
    with {
      $0.outage = failure
      if $0.staleFallback == .standard { $0.staleFallback = .anyStored }
    }
  }

  /// The load, marked as nested if another load waits for it.
  var markedIfNested: ResolvedRequest { MemoryBudget.isInsideLoad ? with { $0.isNested = true } : self }

  subscript<Part>(dynamicMember part: KeyPath<RequestSettings, Part>) -> Part { settings[keyPath: part] }

  /// Whether the load may be looked up in the task of its caller.
  ///
  /// The manager cannot end such a lookup, so the store must end it, and the load must have no timeout of its own. An alternative
  /// source, a body or another method than GET leads to requests that a lookup does not replace.
  var allowsLookupByCaller: Bool {
    settings.reads.contains(.disk) && settings.store?.boundsLookupTime == true && settings.timeout == nil
      && settings.alternatives.isEmpty && settings.head.method == .get && settings.body == nil
  }

  /// The URL of the load as text, for errors.
  var address: String { settings.url.address }

  /// The URL of the load in events.
  var observedURL: LoadURL { LoadURL(settings.url) }

  /// Returns the error with the URL of the load, and with the redirects that led to `url`.
  ///
  /// An error that names another URL is about another request, such as one that a downloader sent for a token. It is returned
  /// unchanged.
  func naming(_ error: CacheError, at url: URL, after redirects: [URL]) -> CacheError {
    guard redirects.first == self.url else { return error.about(address) }
    let (requested, failed) = (address, url.address)
    guard error.url == nil || [requested, failed, url.absoluteString].contains(error.url) else { return error }
    var named = error
    named.url = requested
    named.redirectTargets = redirects.dropFirst().map(\.address) + [failed] + error.redirectTargets
    return named
  }

  /// Whether a load or an HTTP caller receives the head as a failure, with ``StaleFallback/anyStored``.
  func isFailure(_ response: HTTPResponse) -> Bool {
    let status = response.status.code
    if settings.destination.isStream { return status == 429 || status >= 500 }
    return status != 304 && !settings.acceptedStatuses.contains(status) && !isFollowed(response)
  }

  /// Whether the load follows the response to another URL.
  func isFollowed(_ response: HTTPResponse) -> Bool { settings.redirectLimit > 0 && RedirectRules.leads(response) }

  var bodyTooLarge: CacheError {
    CacheError(.bodyTooLarge, reason: "the body is larger than the limit of \(settings.maximumBodySize) bytes")
  }

  /// Whether a response may be the result of a load: its status is accepted, and it is not a redirect to follow.
  func isResult(_ response: HTTPResponse) -> Bool {
    settings.acceptedStatuses.contains(response.status.code) && !isFollowed(response)
  }

  /// Returns the resource of a redirect's target. The caller's own key names the requested URL, but not the target. A mirror's
  /// targets still belong to the requested URL.
  func resource(ofTarget request: HTTPRequest) -> String {
    if settings.role == .mirror { return settings.resource }
    return settings.resource(of: request, at: settings.url)
  }

  /// Returns the resource under which responses of a URI are stored, unless a load sets a key.
  func resource(ofURI uri: String) -> String {
    guard settings.cacheKey != nil, let url = URL(string: uri), let request = try? HTTPRequest(resource: url) else {
      return ResourceID.make(uri: uri, partition: settings.partition)
    }
    return settings.resource(of: request, at: url)
  }

  /// Returns the URL from which the bytes of a stored response came. It differs from the requested URL if the response came from
  /// an alternative, or is stored under the caller's own key.
  func origin(of metadata: StoredMetadata, for request: HTTPRequest, at url: URL) -> URL {
    let stored = metadata.request
    guard stored.path != request.path || stored.authority != request.authority || stored.scheme != request.scheme,
      ResourceID.uri(of: stored) != ResourceID.uri(of: request)
    else { return url }
    return stored.absoluteURL ?? url
  }

  /// Whether the response is a file of this machine. No store receives a copy of its bytes, but values made of them are stored.
  var isLocalFile: Bool { settings.head.scheme == "file" && !settings.isFromCaller }

  /// Whether the durable store receives the original.
  var storesOriginal: Bool { !isLocalFile && settings.representation?.storesOriginal != false }

  /// Whether the memory store receives the original. It receives only the value if the durable store does.
  var cachesOriginal: Bool { settings.representation?.storesOriginal != false || !settings.writes.contains(.disk) }

  func observe(_ event: @autoclosure () -> CacheEvent) { settings.observation?.observe(event()) }

  /// The uptime at which work that is measured for the observer begins, or zero without an observer.
  var observationStart: Duration { settings.observation == nil ? .zero : settings.clock.uptime }

  func observeStored(_ key: CacheKey, _ bytes: Int64, since start: Duration) {
    observe(.stored(key: key, layer: .disk, bytes: bytes, duration: settings.clock.uptime - start))
  }

  var noDurableStore: CacheError {
    CacheError(.invalidConfiguration, reason: "the load has no durable store to write", url: address)
  }
  var managerIsClosed: CacheError { CacheError(.closed, reason: "the manager has been closed", url: address) }

  /// Reports the failure of a revalidation whose result may reach no waiter, even if a stored response was served instead.
  func observeBackground(_ result: Result<Exchange, CacheError>) {
    switch result {
    case .failure(let error):
      if !error.isCancellation { observe(.backgroundFailed(url: observedURL, error: error)) }
    case .success(let outcome):
      if let error = outcome.fallbackReason { observe(.backgroundFailed(url: observedURL, error: error.about(address))) }
    }
  }

  func observeEnd<Value: Sendable>(_ result: Result<Resource<Value>, CacheError>, startedAt start: Duration) {
    let duration = settings.observation == nil ? .zero : settings.clock.uptime - start
    switch result {
    case .success(let resource):
      observe(
        .finished(
          url: observedURL, source: resource.source, fallbackReason: resource.fallbackReason, error: nil, duration: duration))
    case .failure(let error):
      observe(.finished(url: observedURL, source: nil, fallbackReason: nil, error: error, duration: duration))
    }
  }
}

/// A function that returns the cache key of a request, or `nil` for its URL.
typealias CacheKeyFunction = @Sendable (HTTPRequest) -> String?

/// The settings of one load: its environment, and what its request adds or changes.
struct RequestSettings: Sendable {
  /// The identifier of the load in the events that an observer receives.
  let id: LoadID
  /// The components and settings that all stages of the load use.
  let environment: Environment
  var head: HTTPRequest
  /// The URL of the load, or `nil` if ``head`` states it. HTTP requests of `respond(to:)` need a URL only for errors and events.
  private var statedURL: URL?
  var body: RequestBody?
  var downloader: (any Downloader)? { didSet { downloaderID = downloader?.id } }
  private(set) var downloaderID: ComponentID?
  var isFromSchemeHandler: Bool
  /// The alternative sources. Empty for the load of an alternative.
  var alternatives: [ResolvedAlternative] = []
  /// The role of the server that receives the request.
  var role = SourceRole.original
  /// Whether the request may use the stores.
  private(set) var usesStores = true
  let observation: LoadObservation?
  var policy: LoadPolicy
  var staleFallback: StaleFallback
  /// The error of every request that the load would send, or `nil` if it may send requests. A load with an outage still uses the
  /// stored responses that may replace a failed one.
  var outage: CacheError?
  var partition: String?
  /// The resource under which the response is stored, unless a redirect leads to another one.
  private(set) var resource: String
  /// The name by which the caller cancels the load, or `nil` if it is the ``resource``. An interceptor can change the resource.
  private(set) var statedName: String?
  /// The name by which the caller cancels the load: see ``name(of:key:_:_:)``.
  var name: String { statedName ?? resource }
  var reads: CacheLayers
  var writes: CacheLayers
  var expiration: Expiration?
  var priority: LoadPriority.Level
  var networkAccess: NetworkAccess
  var maximumBodySize: Int64
  /// The destination of the bytes. A stream is for an HTTP caller, which handles methods, statuses and redirects itself. Its
  /// conditions and ranges, and stored parts, are used.
  var destination = BodyDestination.memory
  /// The representation that the waiters want, or `nil` for the bytes and a stored original.
  var representation: RequestedRepresentation?
  /// Whether another load waits for this one. That load has already reserved memory, so this one does not wait for any.
  var isNested = false
  /// Whether the response is one that the caller stores. It replaces every response that is requested before it is stored.
  var isFromCaller = false
  /// Whether the load has hooks.
  private(set) var hasHooks = false
  /// Whether the URL alone distinguishes the load from other plain loads of its manager.
  fileprivate(set) var isPlain = false
  /// Called with `true` when the downloader receives a request, and with `false` when that has failed or its response has ended.
  var reportInFlight: (@Sendable (Bool) -> Void)?
  /// Receives the interim responses of the origin, for an HTTP caller.
  var onInterimResponse: (@Sendable (HTTPResponse) -> Void)?

  /// The role of the server that receives the request.
  enum SourceRole {
    /// The server of the resource.
    case original
    /// A mirror. Its response is stored under the original's URL, so stored responses of the original do not apply to this
    /// server.
    case mirror
    /// A low-data alternative. Its response is stored under its own URL.
    case lowData
  }

  init(_ request: borrowing ResourceRequest, _ core: LoadCoordinator, id: LoadID = LoadID()) throws(CacheError) {
    let environment: Environment
    do throws(CacheError) {
      environment = try core.environment.resolving(request.options)
    } catch {
      throw error.about(request.url.address)
    }
    let source = try RequestTarget(request.url, request, headerFields: request.headerFields, environment)
    self.init(source, body: request.body, request.options, environment, id: id)
    if request.options.key == nil, environment.interceptsLookups || environment.cacheKey != nil && !request.headerFields.isEmpty {
      statedName = Self.name(of: request.url, key: nil, partition, environment.cacheKey)
    }
    if !request.options.alternatives.isEmpty { settle(request.options.alternatives, request) }
    isPlain = request.isPlain && environment.plain?.allowsJoining == true && resource == source.uri
  }

  private init(
    _ source: RequestTarget, body: RequestBody? = nil, _ options: RequestOptions, _ environment: Environment,
    id: LoadID = LoadID()
  ) {
    self.id = id
    self.environment = environment
    head = source.head
    statedURL = source.url
    (downloader, downloaderID) = (source.downloader, source.downloader?.id)
    isFromSchemeHandler = source.isFromSchemeHandler
    self.body = body
    partition = options.partition
    resource =
      if options.key == nil, environment.cacheKey == nil, let uri = source.uri {
        ResourceID.make(uri: uri, partition: options.partition)
      } else {
        Self.resource(of: source.head, at: source.url, key: options.key, options.partition, environment.cacheKey)
      }
    observation = environment.observation(of: id)
    policy = environment.policy
    staleFallback = environment.staleFallback
    hasHooks = options.hooks?.isSet == true
    reads = options.reads
    writes = options.writes
    expiration = options.expiration
    priority = options.priority
    networkAccess = environment.networkAccess
    maximumBodySize = environment.maximumBodySize
    settleLayers()
  }

  private static func resource(
    of head: HTTPRequest, at url: URL?, key: String?, _ partition: String?,
    _ cacheKey: CacheKeyFunction?
  ) -> String {
    if let key = key ?? ResourceManager.Configuration.key(of: head, by: cacheKey) {
      return ResourceID.make(uri: "", key: key, partition: partition)
    }
    return ResourceID.make(uri: ResourceID.uri(of: head) ?? url?.absoluteString ?? "", partition: partition)
  }

  /// Returns the name of the loads of a URL, as their callers have passed it: without fields, and before the interceptor. Returns
  /// `nil` if no request can be made for the URL.
  static func name(of url: URL, key: String?, _ partition: String?, _ cacheKey: CacheKeyFunction?) -> String? {
    guard let head = try? HTTPRequest(resource: url) else { return nil }
    return resource(of: head, at: url, key: key, partition, cacheKey)
  }

  /// Returns the resource of a request whose load sets no key for it.
  func resource(of head: HTTPRequest, at url: URL) -> String {
    Self.resource(of: head, at: url, key: nil, partition, environment.cacheKey)
  }

  /// The URL of the load.
  var url: URL {
    // If the head does not form a URL, the caller has provided one.
    get { statedURL ?? head.absoluteURL ?? URL(filePath: "/") }
    set { statedURL = newValue }
  }

  /// Creates the settings of an HTTP request, which is sent unchanged.
  init(
    exchange request: HTTPRequest, hasBody: Bool, _ options: RequestOptions, _ core: LoadCoordinator
  ) throws(CacheError) {
    let environment = try core.environment.resolving(options)
    if let source = RequestTarget(plain: request, options, environment) {
      self.init(source, options, environment)
    } else {
      try self.init(modified: request, options, environment.interceptor, core)
    }
    destination = .stream
    if hasBody, head.method == .get || head.method == .head {
      usesStores = false
      settleLayers()
    }
  }

  /// Creates the settings of an HTTP request whose target must be checked, or may be changed by an interceptor.
  private init(
    modified request: HTTPRequest, _ options: RequestOptions, _ interceptor: RequestInterceptor?, _ core: LoadCoordinator
  ) throws(CacheError) {
    guard let url = request.absoluteURL, url.scheme != nil, ResourceID.uri(of: request) != nil else {
      throw CacheError(.invalidURL, reason: "the request has no absolute target: scheme, authority and path")
    }
    var options = options
    options.alternatives = []
    // The interceptor receives the request itself below, and not this substitute.
    options.interceptor = interceptor.map { .use($0.withoutLookups) } ?? .disabled
    // The substitute needs no key of the manager's function, which receives the request below.
    let key = options.key
    options.key = key ?? url.absoluteString
    try self.init(ResourceRequest(url, method: request.method, options: options), core)
    head = request
    try interceptor?.willLookUp(&head)
    try head.convertHost()
    resource = Self.resource(of: head, at: url, key: key, partition, environment.cacheKey)
    // The function is called once. With it, the name of a background revalidation is that of the changed request.
    if key == nil, environment.cacheKey == nil { statedName = Self.name(of: url, key: nil, partition, nil) }
  }

  private mutating func settleLayers() {
    if body != nil, head.method == .get {
      // The resource's name does not describe the request's body, so the response is for this request alone (RFC 9110 §9.3.1).
      usesStores = false
    }
    switch policy {
    case .reload: reads = []
    case .memoryElseReload: reads.remove(.disk)
    case .standard, .cacheFirst, .revalidate, .cacheOnly, .staleWhileRevalidate: break
    }
    if !hasMemory {
      reads.remove(.memory)
      writes.remove(.memory)
    }
    if !hasStore {
      reads.remove(.disk)
      writes.remove(.disk)
    }
  }

  private mutating func settle(_ sources: [AlternativeSource], _ request: ResourceRequest) {
    // A request that may have changed something at one server is not sent to another.
    guard head.method == .get || head.method == .head else { return }
    alternatives = sources.map { ResolvedAlternative($0, request, environment) }
  }

  /// Makes the load request an alternative in place of the original.
  mutating func request(_ source: RequestTarget, as alternative: AlternativeSource) {
    (head, statedURL) = (source.head, source.url)
    (downloader, isFromSchemeHandler) = (source.downloader, source.isFromSchemeHandler)
    alternatives = []
    switch alternative {
    case .mirror: role = .mirror
    case .lowData:
      role = .lowData
      resource = resource(of: head, at: url)
    }
  }
}

/// The components and settings that a load takes from its environment.
extension RequestSettings {
  var memory: (any MemoryStoring)? { usesStores ? environment.memory : nil }
  var store: (any CacheStore)? { usesStores ? environment.store : nil }
  var fleet: (any CacheFleet)? { environment.fleet }
  var fleetMember: FleetMember? { environment.fleetMember }
  var collapseTimeout: Duration? { environment.collapseTimeout }
  var validator: (any ResponseValidator)? { environment.validator }
  /// The interceptor, or `nil` if it has no stage for redirects.
  var redirectInterceptor: RequestInterceptor? { environment.interceptor.flatMap { $0.interceptsRedirects ? $0 : nil } }
  var clock: any CacheClock { environment.clock }
  var clockIdentity: ComponentID? { environment.clockIdentity }
  var executor: (any TaskExecutor)? { environment.executor }
  var cacheKey: CacheKeyFunction? { environment.cacheKey }
  var storagePolicy: StoragePolicy {
    // The original of a file is stored already, so even a value that is larger than its original is worth storing.
    head.scheme == "file" && environment.storagePolicy != .originals ? .variants : environment.storagePolicy
  }
  var timeout: Duration? { environment.timeout }
  var idleTimeout: Duration? { environment.idleTimeout }
  var acceptedStatuses: AcceptedStatuses { environment.acceptedStatuses }
  var redirectLimit: Int { environment.redirectLimit }
  var allowsInsecureRedirects: Bool { environment.allowsInsecureRedirects }
  var maximumBodyInMemory: Int64 { environment.maximumBodyInMemory }
  var temporarySpace: TemporarySpace { environment.temporarySpace }
  var invalidations: InvalidationLog { environment.invalidations }
  var failures: RecentFailures { environment.failures }
  var commitOrder: CommitOrder { environment.commitOrder }
  var parts: PartTable { environment.parts }
  var budget: MemoryBudget { environment.budget }
}

extension ResourceManager.Configuration {
  /// Returns the key that a function gives a request, or `nil` if the resource has the URL's name.
  static func key(of head: HTTPRequest, by cacheKey: CacheKeyFunction?) -> String? {
    guard let cacheKey else { return nil }
    var get = head
    // A response to a GET serves other methods, and other methods remove it.
    if get.method != .get { get.method = .get }
    // With an empty key, unrelated resources would be one.
    return cacheKey(get).flatMap { $0.isEmpty ? nil : $0 }
  }
}
