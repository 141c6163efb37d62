internal import CacheCore
internal import HTTPTypes

/// A key that is equal for loads that may share one piece of work. It covers everything that can change the response or its place
/// of storage.
///
/// The key is an object because several tables contain the key of a load. It is compared with itself far more often
/// than with another key.
final class CoalescingKey: Hashable, Sendable {
  private let load: ResolvedRequest
  /// The part of the load's request that distinguishes it.
  private let head: HTTPRequest
  /// Whether the key ignores the layers that the load reads and writes, and its maximum body size.
  private let ignoresStorage: Bool
  private let timeout: Duration?
  private let hash: Int

  /// - Parameters:
  ///   - load: The load whose work may be shared.
  ///   - head: The part of the load's request that distinguishes it, or `nil` for the whole request.
  ///   - ignoresStorage: Whether the key is also equal for loads that use other layers or have another maximum body size.
  ///   - timeout: The timeout of the whole transfer, if the first load's timeout applies to all loads. `nil` leaves the timeout
  ///     out of the key.
  init(_ load: ResolvedRequest, head: HTTPRequest? = nil, ignoresStorage: Bool = false, timeout: Duration? = nil) {
    self.load = load
    self.head = head ?? load.settings.head
    self.ignoresStorage = ignoresStorage
    self.timeout = timeout
    hash = Self.hash(of: self.head, resource: load.settings.resource)
  }

  /// The resource under which the response is stored, unless the request is redirected.
  var resource: String { load.settings.resource }

  /// Hashes the parts that differ between nearly all loads. Equality compares the other parts too.
  private static func hash(of head: HTTPRequest, resource: String) -> Int {
    var hasher = Hasher()
    hasher.combine(resource)
    // The sum does not depend on the order of the fields. Without the values, all requests that differ in one field would have
    // the same hash.
    var fields = 0
    for field in head.headerFields { fields &+= field.value.hashValue }
    hasher.combine(fields)
    return hasher.finalize()
  }

  func hash(into hasher: inout Hasher) { hasher.combine(hash) }

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
    a === b || (a.hash == b.hash && a.head == b.head && a.timeout == b.timeout && a.isSameWork(as: b))
  }

  private func isSameWork(as other: CoalescingKey) -> Bool {
    let (mine, others) = (load.settings, other.load.settings)
    // The stores compare resources byte by byte, but `String` does not. Resources that are equal as strings can have different
    // bytes.
    guard mine.resource.utf8.elementsEqual(others.resource.utf8) else { return false }
    return mine.policy == others.policy && mine.staleFallback == others.staleFallback
      && mine.outage?.code == others.outage?.code && mine.outage?.reason == others.outage?.reason
      && reads == other.reads && writes == other.writes
      && mine.expiration == others.expiration && mine.acceptedStatuses == others.acceptedStatuses
      && mine.redirectLimit == others.redirectLimit && mine.allowsInsecureRedirects == others.allowsInsecureRedirects
      && mine.networkAccess == others.networkAccess && largestBody == other.largestBody
      && mine.idleTimeout == others.idleTimeout && Self.areEquivalent(mine.alternatives, others.alternatives)
      && mine.components == others.components && mine.isNested == others.isNested
  }

  private var reads: CacheLayers { ignoresStorage ? .all : load.settings.reads }
  private var writes: CacheLayers { ignoresStorage ? .all : load.settings.writes }
  private var largestBody: Int64 { ignoresStorage ? 0 : load.settings.maximumBodySize }

  /// Compares alternatives by their kinds and by the requests that would be sent to them.
  private static func areEquivalent(_ mine: [ResolvedAlternative], _ others: [ResolvedAlternative]) -> Bool {
    mine.elementsEqual(others) { a, b in
      a.alternative == b.alternative && (try? a.source.get().head) == (try? b.source.get().head)
    }
  }
}

extension RequestSettings {
  /// The identities of the components that respond, store and decide.
  fileprivate var components: [ComponentID?] {
    [downloader?.id, memory?.id, store?.id, validator?.id, observation?.observer.id, clockIdentity, redirectInterceptor?.id]
  }
}
