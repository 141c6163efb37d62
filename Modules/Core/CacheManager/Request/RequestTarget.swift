internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The target of a load, which is the original or an alternative: the request, and the downloader that sends it.
struct RequestTarget: Sendable {
  let head: HTTPRequest
  /// The URL, or `nil` if the head states it.
  let url: URL?
  /// The text of the URL if it is the effective URI, as that of most URLs is.
  let uri: String?
  let downloader: (any Downloader)?
  let isFromSchemeHandler: Bool

  /// - Throws: ``CacheError/Code/invalidURL``, or the error with which the interceptor refuses the request.
  init(
    _ url: URL, _ request: borrowing ResourceRequest, headerFields: HTTPFields, _ environment: Environment
  ) throws(CacheError) {
    var url = url
    var uri = ResourceID.plainURI(of: url)
    var head: HTTPRequest
    if let uri {
      head = HTTPRequest(plainURI: uri, method: request.method, headerFields: headerFields)
    } else {
      head = try HTTPRequest(parsing: url, method: request.method, headerFields: headerFields)
    }
    if let type = request.body?.contentType, head.headerFields[.contentType] == nil { head.headerFields[.contentType] = type }
    if environment.interceptsLookups, let interceptor = environment.interceptor {
      (head, url) = try Self.changed(head, url, by: interceptor)
      uri = ResourceID.plainURI(of: url)
    }
    let scheme = head.scheme ?? ""
    let isHTTP = scheme == "http" || scheme == "https"
    let provided = isHTTP ? environment.downloader : environment.schemeHandlers[scheme]
    (self.head, self.url, self.uri) = (head, url, uri)
    downloader = Self.resolved(provided, request.options, environment, isHTTP: isHTTP)
    isFromSchemeHandler = !isHTTP && provided != nil && request.options.keepsDownloader
  }

  /// Creates the target of a request that is sent unchanged. Returns `nil` if an interceptor may change the request, or if the
  /// target needs a URL.
  init?(plain request: HTTPRequest, _ options: RequestOptions, _ environment: Environment) {
    guard !environment.interceptsLookups, request.hasPlainTarget else { return nil }
    (head, url, uri, isFromSchemeHandler) = (request, nil, nil, false)
    downloader = Self.resolved(environment.downloader, options, environment, isHTTP: true)
  }

  /// Returns the load's own downloader or the provided one, with the hooks of the load and the interceptor. The downloader with
  /// hooks is unique, so the load is coalesced with no other.
  private static func resolved(
    _ provided: (any Downloader)?, _ options: RequestOptions, _ environment: Environment, isHTTP: Bool
  ) -> (any Downloader)? {
    let isIntercepted = isHTTP && environment.interceptsSending
    // Most loads have the provided one. Each change copies it.
    guard options.storage != nil || isIntercepted else { return provided }
    guard var downloader = options.downloader.resolved(provided) else { return nil }
    if let hooks = options.hooks, hooks.isSet { downloader = HookedDownloader(downloader, hooks: hooks) }
    if isIntercepted, let interceptor = environment.interceptor {
      downloader = InterceptedDownloader(downloader, by: interceptor)
    }
    return downloader
  }

  /// Returns the request after the interceptor has changed it. This request is loaded, even if it names another resource.
  private static func changed(
    _ original: HTTPRequest, _ url: URL, by interceptor: RequestInterceptor
  ) throws(CacheError) -> (HTTPRequest, URL) {
    var head = original
    do throws(CacheError) {
      try interceptor.willLookUp(&head)
      try head.convertHost()
    } catch {
      throw error.about(url.address)
    }
    guard head.scheme != original.scheme || head.authority != original.authority || head.path != original.path else {
      return (head, url)
    }
    guard let changed = head.absoluteURL, changed.scheme != nil else {
      throw CacheError(.invalidURL, reason: "the interceptor's request has no URL", url: url.address)
    }
    return (head, changed)
  }
}

extension RequestOptions {
  /// Whether the load has the provided downloader, or an adapted one.
  fileprivate var keepsDownloader: Bool {
    switch downloader {
    case nil, .adapted: true
    case .use, .disabled: false
    }
  }
}

/// An alternative source with its request.
struct ResolvedAlternative: Sendable {
  let alternative: AlternativeSource
  /// The target of the source, or the error for a source that cannot be requested.
  let source: Result<RequestTarget, CacheError>

  init(_ alternative: AlternativeSource, _ request: ResourceRequest, _ environment: Environment) {
    self.alternative = alternative
    let url = alternative.url
    var fields = request.headerFields
    // Conditions are about the original's responses. Credentials and cookies are for its origin.
    for name in ConfidentialFields.conditions { fields[name] = nil }
    if !url.isSameOrigin(as: request.url) { for name in ConfidentialFields.credentials { fields[name] = nil } }
    do throws(CacheError) {
      source = .success(try RequestTarget(url, request, headerFields: fields, environment))
    } catch {
      source = .failure(error.about(url.address))
    }
  }
}

/// The request fields that are for one origin only.
enum ConfidentialFields {
  static let credentials: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]
  static let conditions: [HTTPField.Name] = [.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange]
}

extension URL {
  /// Whether scheme, host and port are equal (RFC 6454 §4).
  func isSameOrigin(as other: URL) -> Bool {
    func port(_ url: URL) -> Int { url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80) }
    func host(_ url: URL) -> String? { url.host().map(HostName.comparable) }
    return scheme?.lowercased() == other.scheme?.lowercased() && host(self) == host(other)
      && port(self) == port(other)
  }
}

extension HTTPRequest {
  /// Whether the target is an absolute `http` or `https` URL that all parsers read alike (RFC 3986 §3). It has no characters to
  /// escape, no user information and no address in brackets. `false` does not mean that the target is invalid.
  var hasPlainTarget: Bool {
    guard let scheme, scheme == "http" || scheme == "https", let authority, let path else { return false }
    return Self.isPlain(authority: authority.utf8) && Self.isPlain(path: path.utf8)
  }

  private static func isPlain(authority: String.UTF8View) -> Bool {
    var (hostCount, port) = (0, Int?.none)
    for byte in authority {
      if let digits = port {
        guard (48...57).contains(byte), digits <= 6_553 else { return false }
        port = digits * 10 + Int(byte - 48)
      } else if byte == UInt8(ascii: ":") {
        port = 0
      } else {
        guard isLetterOrDigit(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-") else { return false }
        hostCount += 1
      }
    }
    return hostCount > 0 && (port.map { (1...65_535).contains($0) } ?? true)
  }

  private static func isPlain(path: String.UTF8View) -> Bool {
    guard path.first == UInt8(ascii: "/") else { return false }
    return path.allSatisfy { byte in
      if isLetterOrDigit(byte) { return true }
      switch byte {
      case UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "?"),
        UInt8(ascii: "="), UInt8(ascii: "&"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: ":"),
        UInt8(ascii: "@"), UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "*"):
        return true
      default: return false
      }
    }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...122).contains(byte | 0x20)
  }
}

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

  /// Creates the key of loads that get the same response, whatever layers they use and whatever their maximum body size is.
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
    let isSameStorage =
      purpose == .resource
      || (mine.reads == others.reads && mine.writes == others.writes && mine.maximumBodySize == others.maximumBodySize
        && mine.environment.storeWriteTimeout == others.environment.storeWriteTimeout
        && mine.environment.storeReadTimeout == others.environment.storeReadTimeout)
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
  /// The revalidation of a response that was already delivered.
  case revalidation(CacheKey, stores: [ComponentID?])
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
  var revalidatedResource: String? { if case .revalidation(let key, _) = self { key.resource } else { nil } }

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
