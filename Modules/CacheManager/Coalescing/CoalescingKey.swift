internal import CacheCore
internal import HTTPTypes

/// A key that is equal for loads that may share one piece of work. It covers everything that can change the response, or the
/// place where it is stored.
///
/// The key is an object because a coalesced load's key is in several tables. It is compared with itself far more often than with
/// another key.
final class CoalescingKey: Hashable, Sendable {
  private let load: ResolvedRequest
  /// The part of the load's request that distinguishes it.
  private let head: HTTPRequest
  /// Whether the key ignores the layers that the load reads and writes, and its maximum body size.
  private let isWhereverKept: Bool
  private let timeout: Duration?
  private let hash: Int

  /// - Parameters:
  ///   - load: The load whose work may be shared.
  ///   - head: The part of the load's request that distinguishes it, or `nil` for the whole request.
  ///   - isWhereverKept: Whether the key is also equal for loads that store the response elsewhere, or accept a larger one.
  ///   - timeout: The timeout of the whole transfer, if the first load's timeout applies to all loads. `nil` leaves the timeout
  ///     out of the key.
  init(_ load: ResolvedRequest, head: HTTPRequest? = nil, isWhereverKept: Bool = false, timeout: Duration? = nil) {
    self.load = load
    self.head = head ?? load.settings.head
    self.isWhereverKept = isWhereverKept
    self.timeout = timeout
    hash = Self.hash(of: self.head, resource: load.settings.resource)
  }

  /// The resource under which the response is stored, unless the request is redirected.
  var resource: String { load.settings.resource }

  /// Hashes the parts that distinguish nearly all loads. Equality compares the other parts too.
  private static func hash(of head: HTTPRequest, resource: String) -> Int {
    var hasher = Hasher()
    hasher.combine(resource)
    // A sum does not depend on the order of the fields. Without the values, requests that differ in one field only would all
    // share one hash.
    var fields = 0
    for field in head.headerFields { fields &+= field.value.hashValue }
    hasher.combine(fields)
    return hasher.finalize()
  }

  func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// A hash of the bytes of the resource's name, of the request and of the components. It replaces the key where the key must not
  /// be held in memory.
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
    // The stores compare resources byte by byte, but `String` does not. Two resources may be equal as strings and still differ.
    guard mine.resource.utf8.elementsEqual(others.resource.utf8) else { return false }
    return mine.policy == others.policy && reads == other.reads && writes == other.writes
      && mine.expiration == others.expiration && mine.acceptedStatuses == others.acceptedStatuses
      && mine.redirectLimit == others.redirectLimit && mine.allowsInsecureRedirects == others.allowsInsecureRedirects
      && mine.networkAccess == others.networkAccess && largestBody == other.largestBody
      && mine.idleTimeout == others.idleTimeout && Self.asksAlike(mine.alternatives, others.alternatives)
      && mine.components == others.components && mine.isNested == others.isNested
  }

  private var reads: CacheLayers { isWhereverKept ? .all : load.settings.reads }
  private var writes: CacheLayers { isWhereverKept ? .all : load.settings.writes }
  private var largestBody: Int64 { isWhereverKept ? 0 : load.settings.maximumBodySize }

  /// Compares alternatives by their kinds and by the requests that would be sent to them.
  private static func asksAlike(_ mine: [ResolvedAlternative], _ others: [ResolvedAlternative]) -> Bool {
    mine.elementsEqual(others) { a, b in
      a.alternative == b.alternative && (try? a.source.get().head) == (try? b.source.get().head)
    }
  }
}

extension RequestSettings {
  /// The identities of the components that respond, store and decide.
  fileprivate var components: [ComponentID?] {
    [downloader?.id, memory?.id, store?.id, validator?.id, observer?.id, clockIdentity, redirectInterceptor?.id]
  }
}
