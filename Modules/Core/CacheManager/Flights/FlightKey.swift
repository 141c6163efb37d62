internal import CacheCore
internal import HTTPTypes

/// A key that is equal for loads that may share one piece of work. It covers everything that can change the response or its place
/// of storage.
///
/// Tables compare keys under their locks, so a comparison reads only what was resolved with the load, and no user's code.
struct CoalescingKey: Hashable, Sendable {
  /// The use of a key.
  private enum Purpose { case load, resource, response }

  private let load: ResolvedRequest
  private let purpose: Purpose
  /// The fields of the request that distinguish it, or `nil` for all of its fields.
  private let fields: HTTPFields?
  /// The hash of the parts that differ between nearly all loads. Equality compares the other parts too.
  private let hash: Int

  /// Creates the key of loads that get the same response and store it in the same layers.
  init(_ load: ResolvedRequest) { self.init(load, .load) }

  /// Creates the key of loads that get the same response and wait equally long for the durable store, whatever layers they use
  /// and whatever their maximum body size is.
  init(ignoringStorageOf load: ResolvedRequest) { self.init(load, .resource) }

  /// Creates the key of requests of HTTP callers that may share one response. The timeout of the first one applies to all. A
  /// request with another method waits for a GET.
  ///
  /// - Parameter fields: The fields in which the requests must be equal.
  init(_ load: ResolvedRequest, sharing fields: HTTPFields) { self.init(load, .response, fields) }

  private init(_ load: ResolvedRequest, _ purpose: Purpose, _ fields: HTTPFields? = nil) {
    (self.load, self.purpose, self.fields) = (load, purpose, fields)
    var hasher = Hasher()
    hasher.combine(CacheKey(resource: load.settings.resource).fingerprint)
    // With a caller's key, the resource does not name the path.
    var path = load.settings.head.path ?? ""
    path.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    // The sum does not depend on the order of the fields. Without the values, all requests that differ in one field would have
    // the same hash.
    var sum = 0
    for field in fields ?? load.settings.head.headerFields { sum &+= field.value.hashValue }
    hasher.combine(sum)
    hash = hasher.finalize()
  }

  /// The resource under which the response is stored, unless the request is redirected.
  var resource: String { load.settings.resource }

  /// Whether the response is one that the caller stores.
  var isFromCaller: Bool { load.isFromCaller }

  /// The part of the request that distinguishes it.
  private var head: HTTPRequest {
    guard let fields else { return load.settings.head }
    var head = load.settings.head
    head.method = .get
    head.headerFields = fields
    return head
  }

  func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// A hash that also depends on the request's own clock. Uptimes of different clocks cannot be compared.
  var markHash: Int { load.settings.clockIdentity.map { hash ^ $0.hashValue } ?? hash }

  /// A hash of the bytes of the resource's name, of the request and of the components. It replaces the key in places that must
  /// not hold the key in memory.
  var digest: Int {
    var hasher = Hasher()
    hasher.combine(CacheKey(resource: resource))
    hasher.combine(head)
    hasher.combine(load.settings.components)
    return hasher.finalize()
  }

  static func == (a: CoalescingKey, b: CoalescingKey) -> Bool {
    guard a.hash == b.hash, a.purpose == b.purpose else { return false }
    if a.load === b.load, a.fields == b.fields { return true }
    return isSameHead(a.head, b.head) && isSameWork(a.load.settings, b.load.settings, a.purpose)
  }

  /// Compares two requests. `HTTPRequest`'s own comparison takes three times as long, because it compares field by field.
  /// `String` compares canonically, so the hash of the bytes decides, as for the resource.
  private static func isSameHead(_ a: HTTPRequest, _ b: HTTPRequest) -> Bool {
    a.path == b.path && a.method == b.method && a.authority == b.authority && a.scheme == b.scheme
      && a.extendedConnectProtocol == b.extendedConnectProtocol && a.headerFields == b.headerFields
  }

  private static func isSameWork(_ mine: RequestSettings, _ others: RequestSettings, _ purpose: Purpose) -> Bool {
    // The stores compare resources byte by byte, but `String` does not. The hash of the bytes decides for it, as in a `CacheKey`.
    guard mine.resource == others.resource else { return false }
    guard purpose != .response || mine.timeout == others.timeout else { return false }
    // A load must not wait for one that waits longer for the store than it would itself, perhaps without a limit.
    guard mine.environment.storeLimits == others.environment.storeLimits else { return false }
    let isSameStorage =
      purpose == .resource
      || (mine.reads == others.reads && mine.writes == others.writes && mine.maximumBodySize == others.maximumBodySize)
    return isSameStorage && mine.policy == others.policy && mine.staleFallback == others.staleFallback
      && mine.outage?.code == others.outage?.code && mine.outage?.reason == others.outage?.reason
      && mine.expiration == others.expiration && mine.acceptedStatuses == others.acceptedStatuses
      && mine.redirectLimit == others.redirectLimit && mine.allowsInsecureRedirects == others.allowsInsecureRedirects
      && mine.networkAccess == others.networkAccess && mine.idleTimeout == others.idleTimeout
      && areEquivalent(mine.alternatives, others.alternatives) && mine.hasSameComponents(as: others)
      && mine.isNested == others.isNested
  }

  /// Compares alternatives by their kinds and by the requests that would be sent to them.
  private static func areEquivalent(_ mine: [ResolvedAlternative], _ others: [ResolvedAlternative]) -> Bool {
    mine.elementsEqual(others) { a, b in
      a.alternative == b.alternative && (try? a.source.get().head) == (try? b.source.get().head)
    }
  }
}

/// The identity of a flight. Equal work has equal keys. The cases are indirect, because a key is copied often.
indirect enum FlightKey: Hashable, Sendable {
  /// The bytes of a request.
  case bytes(CoalescingKey)
  /// The value that a transform makes from a request's bytes.
  case value(CoalescingKey, Transform)
  /// A load into the durable store alone.
  case store(CoalescingKey)
  /// The revalidation of a response that was already delivered, in these stores. The loads that share it wait equally long for
  /// the durable store.
  case revalidation(CacheKey, stores: [ComponentID?], limits: StoreLimits)
  /// A step of a transform: the body, and the transform up to this step.
  case step(Revision, Transform)

  struct Transform: Hashable, Sendable {
    var id: String
    var value: ObjectIdentifier
    /// The executor on which the value is made, if the load names one. The load retains it, so the identifier stays valid.
    var executor: ObjectIdentifier?
    /// The storage policy, if the transform's values can be stored. Loads with different policies share the bytes and the steps,
    /// but not the value.
    var storagePolicy: StoragePolicy?

    init<Value>(
      _ id: String, of value: Value.Type, on executor: (any TaskExecutor)?, _ storagePolicy: StoragePolicy? = nil
    ) {
      self.id = id
      self.value = ObjectIdentifier(value)
      self.executor = executor.map { ObjectIdentifier($0) }
      self.storagePolicy = storagePolicy
    }
  }

  /// The resource that the work requests, or `nil` if it requests none by itself.
  var resource: String? {
    switch self {
    case .bytes(let key), .value(let key, _), .store(let key): key.resource
    case .revalidation, .step: nil
    }
  }

  /// The resource that a revalidation requests, or `nil` for other work.
  var revalidatedResource: String? { if case .revalidation(let key, _, _) = self { key.resource } else { nil } }

  var isStore: Bool { if case .store = self { true } else { false } }

  /// Whether the work stores a response of the caller.
  var isFromCaller: Bool {
    switch self {
    case .bytes(let key), .value(let key, _), .store(let key): key.isFromCaller
    case .revalidation, .step: false
    }
  }
}

extension RequestSettings {
  /// The identities of the components that respond, store and decide.
  struct Components: Hashable, Sendable {
    var downloader: ComponentID?
    var usesStores: Bool
    var others: Environment.Identities
  }

  var components: Components { Components(downloader: downloaderID, usesStores: usesStores, others: environment.identities) }

  func hasSameComponents(as other: RequestSettings) -> Bool {
    environment === other.environment
      ? downloaderID == other.downloaderID && usesStores == other.usesStores : components == other.components
  }
}
