package import CacheCore
internal import HTTPTypes
internal import Synchronization

/// The components and settings of a manager. A load that sets no option uses them as they are.
///
/// A load that sets options has an environment of its own, in which they replace the manager's. The components that an option can
/// adapt are resolved once, because an adapted component is a new one.
final class Environment: Sendable {
  let memory: (any MemoryStoring)?
  let store: (any CacheStore)?
  let fleet: (any CacheFleet)?
  /// The manager as a member of its fleet, or `nil` without one.
  let fleetMember: FleetMember?
  let validator: (any ResponseValidator)?
  let observer: (any LoadObserver)?
  let interceptor: RequestInterceptor?
  /// Whether the interceptor has these stages. Reading it from the interceptor would copy the interceptor.
  let interceptsLookups, interceptsSending: Bool
  /// The clock. Every stage reads it, so it is resolved once.
  let clock: any CacheClock
  /// The identity of a request's own clock. Loads with their own clocks are not coalesced, because clocks cannot be compared.
  let clockIdentity: ComponentID?
  /// The identities of the components.
  let identities: Identities
  /// The log of removals, which shows what was removed during a load.
  let invalidations: InvalidationLog
  /// The latest failures of loads whose policy has an interval.
  let failures: RecentFailures
  /// The limits of the time that loads wait for the durable store, and the order of its commits.
  let writeDeadline, readDeadline: StoreDeadline
  let storeWriteTimeout, storeReadTimeout: Duration?
  let commitOrder: CommitOrder
  /// The memory that loads may use at once, and the limits of requests and steps.
  let budget: MemoryBudget
  /// The representations whose parts are being read.
  let parts: PartTable
  /// The space on disk for the bytes of readers that lag behind.
  let temporarySpace: TemporarySpace
  /// The rules for plain hits, or `nil` if no request of the manager is plain.
  let plain: PlainRules?
  private let configuration: ResourceManager.Configuration
  /// The options of the load, or `nil` if it sets none.
  private let options: RequestOptions.Storage?
  /// The setting of the manager that is out of its range, as an error of every load.
  private let invalidity: CacheError?

  init(_ configuration: ResourceManager.Configuration, _ invalidations: InvalidationLog) {
    (self.configuration, self.invalidations) = (configuration, invalidations)
    (options, clockIdentity) = (nil, nil)
    memory = configuration.memory
    store = configuration.store
    fleet = configuration.collapseTimeout == nil ? nil : configuration.fleet
    validator = configuration.validator
    observer = configuration.observer
    interceptor = configuration.interceptor
    interceptsLookups = interceptor?.interceptsLookups == true
    interceptsSending = interceptor?.interceptsSending == true
    clock = configuration.clock
    identities = Identities(memory, store, validator, observer, clockIdentity, interceptor)
    failures = RecentFailures()
    writeDeadline = StoreDeadline(clock: configuration.clock, limit: configuration.storeWriteTimeout)
    readDeadline = StoreDeadline(clock: configuration.clock, limit: configuration.storeReadTimeout)
    (storeWriteTimeout, storeReadTimeout) = (configuration.storeWriteTimeout, configuration.storeReadTimeout)
    commitOrder = CommitOrder()
    parts = PartTable()
    fleetMember = configuration.fleet.map { [commitOrder] in
      FleetMember($0, configuration, invalidations, commitOrder)
    }
    temporarySpace = TemporarySpace(configuration.temporaryFolder, limit: configuration.maximumTemporaryBytes)
    budget = MemoryBudget(configuration.memoryBudget, steps: configuration.maximumConcurrentTransforms)
    do throws(CacheError) {
      try configuration.check()
      invalidity = nil
    } catch {
      invalidity = error
    }
    if let memory, let validator, configuration.cacheKey == nil, !interceptsLookups, invalidity == nil {
      plain = PlainRules(memory, validator, fleetMember, configuration)
    } else {
      plain = nil
    }
  }

  /// The identities of the components that store and decide. They are read once, because they are a user's code, which must not
  /// run while a table of loads is locked.
  struct Identities: Hashable, Sendable {
    var memory, store, validator, observer, clock, redirects: ComponentID?

    fileprivate init(
      _ memory: (any MemoryStoring)?, _ store: (any CacheStore)?, _ validator: (any ResponseValidator)?,
      _ observer: (any LoadObserver)?, _ clock: ComponentID?, _ interceptor: RequestInterceptor?
    ) {
      (self.memory, self.store, self.validator, self.observer) = (memory?.id, store?.id, validator?.id, observer?.id)
      (self.clock, redirects) = (clock, interceptor.flatMap { $0.interceptsRedirects ? $0.id : nil })
    }
  }

  private init(_ base: Environment, _ options: RequestOptions.Storage) {
    (configuration, self.options) = (base.configuration, options)
    store = options.values.store.resolved(base.store)
    // The manager's memory and its fleet belong to its durable store. A request with another store would share them with the
    // requests from which that store separates it.
    let isSeparate = options.values.store != nil && store.map { $0.id != base.store?.id } ?? false
    memory = options.values.memory.resolved(isSeparate ? nil : base.memory)
    fleet = isSeparate ? nil : base.fleet
    fleetMember = isSeparate ? nil : base.fleetMember
    validator = options.values.validator.resolved(base.validator)
    observer = options.values.observer.resolved(base.observer)
    interceptor = options.values.interceptor.resolved(base.interceptor)
    interceptsLookups = interceptor?.interceptsLookups == true
    interceptsSending = interceptor?.interceptsSending == true
    clock = options.values.clock ?? base.clock
    clockIdentity = options.values.clock.map { ComponentID.unique(type(of: $0)) }
    identities = Identities(memory, store, validator, observer, clockIdentity, interceptor)
    (invalidations, failures, budget) = (base.invalidations, base.failures, base.budget)
    (writeDeadline, readDeadline, commitOrder) = (base.writeDeadline, base.readDeadline, base.commitOrder)
    parts = base.parts
    storeWriteTimeout = options.values.storeWriteTimeout.resolved(base.storeWriteTimeout).map { max(.zero, $0) }
    storeReadTimeout = options.values.storeReadTimeout.resolved(base.storeReadTimeout).map { max(.zero, $0) }
    temporarySpace = base.temporarySpace
    // A request with options is looked up by the rules of its manager.
    (plain, invalidity) = (nil, nil)
  }

  /// The longest times that a load waits for the durable store, or `nil` for waits without a limit.
  var storeLimits: StoreLimits { StoreLimits(write: storeWriteTimeout, read: storeReadTimeout) }

  /// Returns the observer of one load, or `nil` without one.
  func observation(of load: LoadID) -> LoadObservation? {
    // To copy the observer and compare it with nil costs more than this comparison.
    identities.observer == nil ? nil : observer.map { LoadObservation($0, of: load) }
  }

  /// Whether no setting of the manager is out of its range.
  var isValid: Bool { invalidity == nil }

  /// Returns the environment of a request.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if a number of the manager or of the options is out of its range.
  func resolving(_ options: RequestOptions) throws(CacheError) -> Environment {
    if let invalidity { throw invalidity }
    guard let storage = options.storage, storage.changesEnvironment else { return self }
    try storage.check()
    return Environment(self, storage)
  }
}

extension Environment {
  /// Returns the identity of a request, with the key that the manager gives it.
  func identity(of request: ResourceRequest) -> RequestIdentity {
    guard cacheKey != nil, request.options.key == nil, let head = try? HTTPRequest(resource: request.url) else {
      return RequestIdentity(request)
    }
    return RequestIdentity(request, key: ResourceManager.Configuration.key(of: head, by: cacheKey))
  }
}

/// The longest times that a load waits for the durable store.
struct StoreLimits: Hashable, Sendable {
  var write, read: Duration?
}

/// The settings.
extension Environment {
  /// The downloader for `http` and `https` requests, unless the request has its own.
  var downloader: (any Downloader)? { configuration.downloader }
  var schemeHandlers: [String: any Downloader] { configuration.schemeHandlers }
  var collapseTimeout: Duration? { configuration.collapseTimeout }
  var executor: (any TaskExecutor)? { options?.values.executor ?? configuration.executor }
  var cacheKey: CacheKeyFunction? { configuration.cacheKey }
  var policy: LoadPolicy { options?.values.policy ?? configuration.policy }
  var staleFallback: StaleFallback { options?.values.staleFallback ?? configuration.staleFallback }
  var storagePolicy: StoragePolicy { options?.values.storagePolicy ?? configuration.storagePolicy }
  var timeout: Duration? { options?.values.timeout ?? configuration.timeout }
  var idleTimeout: Duration? { options?.values.idleTimeout }
  var acceptedStatuses: AcceptedStatuses { options?.values.acceptedStatuses ?? configuration.acceptedStatuses }
  var redirectLimit: Int { options?.values.redirectLimit ?? configuration.redirectLimit }
  var allowsInsecureRedirects: Bool { options?.values.allowsInsecureRedirects ?? configuration.allowsInsecureRedirects }
  var networkAccess: NetworkAccess { options?.values.networkAccess ?? configuration.networkAccess }
  var maximumBodySize: Int64 { options?.values.maximumBodySize ?? configuration.maximumBodySize }
  var maximumBodyInMemory: Int64 { configuration.maximumBodyInMemory }
}

extension ResourceManager.Configuration {
  /// Throws `CacheError.Code.invalidConfiguration` if a number is out of its range, here or in a component whose own functions
  /// cannot throw.
  package func check() throws(CacheError) {
    try CacheError.require("maximumConcurrentTransforms", maximumConcurrentTransforms, in: 1...)
    try CacheError.require("timeout", positive: timeout)
    try CacheError.require("storeWriteTimeout", storeWriteTimeout, in: .zero...)
    try CacheError.require("storeReadTimeout", storeReadTimeout, in: .zero...)
    try CacheError.require("redirectLimit", redirectLimit, in: 0...)
    try CacheError.require("maximumBodySize", maximumBodySize, in: 0...)
    try CacheError.require("memoryBudget", memoryBudget, in: 1...)
    try CacheError.require("maximumBodyInMemory", maximumBodyInMemory, in: 0...)
    try CacheError.require("maximumTemporaryBytes", maximumTemporaryBytes, in: 0...)
    try CacheError.require("collapseTimeout", collapseTimeout, in: .zero...)
    try policy.check()
    for component in [memory, validator, executor, fleet] as [(any Sendable)?] {
      try (component as? any CheckedComponent)?.validity.get()
    }
  }
}

extension LoadPolicy {
  fileprivate func check() throws(CacheError) {
    guard case .revalidate(let interval, let patience) = self else { return }
    try CacheError.require("atMostEvery", interval, in: .zero...)
    try CacheError.require("showCachedAfter", patience, in: .zero...)
  }
}

extension RequestOptions.Storage {
  /// Whether an option is a part of the environment. The others are the load's own: its downloader, key, layers, priority and
  /// queue. An image service sets only those, and then needs no environment for each request.
  fileprivate var changesEnvironment: Bool {
    // A comparison of a component with `nil` would copy it.
    switch (values.store, values.memory, values.validator) {
    case (.none, .none, .none): break
    default: return true
    }
    switch (values.observer, values.interceptor, values.clock, values.executor) {
    case (.none, .none, .none, .none): break
    default: return true
    }
    return values.policy != nil || values.staleFallback != nil || values.storagePolicy != nil || values.timeout != nil
      || values.idleTimeout != nil || values.storeWriteTimeout != nil || values.storeReadTimeout != nil
      || values.acceptedStatuses != nil || values.redirectLimit != nil || values.allowsInsecureRedirects != nil
      || values.networkAccess != nil || values.maximumBodySize != nil
  }

  /// Whether no number of the options is out of its range.
  var isValid: Bool { !needsCheck || (try? checkAll()) != nil }

  /// Throws `CacheError.Code.invalidConfiguration` if a number of the options is out of its range.
  func check() throws(CacheError) { if needsCheck { try checkAll() } }

  /// Whether the options have a setting to check. Most have none.
  private var needsCheck: Bool {
    // A lookup in memory makes this check, and image views always set a policy.
    if case .revalidate? = values.policy { return true }
    return values.timeout != nil || values.idleTimeout != nil || values.redirectLimit != nil || values.maximumBodySize != nil
      || values.storeWriteTimeout != nil || values.storeReadTimeout != nil || values.memory != nil || values.validator != nil
      || values.executor != nil
  }

  @inline(never)
  private func checkAll() throws(CacheError) {
    try CacheError.require("timeout", positive: values.timeout)
    try CacheError.require("idleTimeout", positive: values.idleTimeout)
    try CacheError.require("redirectLimit", values.redirectLimit, in: 0...)
    try CacheError.require("maximumBodySize", values.maximumBodySize, in: 0...)
    try CacheError.require("storeWriteTimeout", values.storeWriteTimeout?.replacement, in: .zero...)
    try CacheError.require("storeReadTimeout", values.storeReadTimeout?.replacement, in: .zero...)
    try values.policy?.check()
    if case .use(let memory)? = values.memory { try (memory as? any CheckedComponent)?.validity.get() }
    if case .use(let validator)? = values.validator { try (validator as? any CheckedComponent)?.validity.get() }
    if let executor = values.executor { try (executor as? any CheckedComponent)?.validity.get() }
  }
}

/// The presence of components. A comparison of a component with `nil` would copy it.
extension RequestSettings {
  /// Whether the request has a memory store.
  var hasMemory: Bool { usesStores && environment.identities.memory != nil }
  /// Whether the request has a durable store.
  var hasStore: Bool { usesStores && environment.identities.store != nil }
  /// Whether the process belongs to a fleet, which purges together. Only a fleet that also collapses requests has leases.
  var hasFleet: Bool { environment.fleetMember != nil }
  var validatorID: ComponentID? { environment.identities.validator }
}

/// The observer of one load.
///
/// Every piece of work of a load retains the load's ``ResolvedRequest``, and with it this object. It is therefore released when
/// all work has ended. This includes work after the result: a commit to a slow store, a revalidation, or a body that an HTTP
/// caller reads.
final class LoadObservation: Sendable {
  let observer: any LoadObserver
  private let id: LoadID
  private let isStarted = Atomic(false)

  init(_ observer: any LoadObserver, of id: LoadID) {
    self.observer = observer
    self.id = id
  }

  deinit { if isStarted.load(ordering: .acquiring) { observer.observe(.workEnded, of: id) } }

  func observe(_ event: CacheEvent) {
    if case .started = event { isStarted.store(true, ordering: .releasing) }
    observer.observe(event, of: id)
  }

  /// Returns a number that the events of one transfer share.
  static func makeTransferNumber() -> Int { lastTransfer.wrappingAdd(1, ordering: .relaxed).newValue }

  private static let lastTransfer = Atomic(0)
}
