internal import CacheCore
internal import HTTPTypes

/// Equal for loads that may share one piece of work: everything that can change the answer, or where it is kept.
///
/// An object, since a coalesced load's key is compared with itself far more often than with another's, and lies in several
/// tables.
final class CoalescingKey: Hashable, Sendable {
  private let load: ResolvedRequest
  /// Of the load's request what tells it apart.
  private let head: HTTPRequest
  /// Whether it does not matter where the answer is kept, and how large it may be.
  private let isWhereverKept: Bool
  private let timeout: Duration?
  private let hash: Int

  /// - Parameters:
  ///   - load: whose work may be shared.
  ///   - head: of the load's request what tells it apart; nil: all of it.
  ///   - isWhereverKept: equal also for loads that keep the answer elsewhere, or take a larger one.
  ///   - timeout: of the whole transfer, where the first one's is everybody's.
  init(_ load: ResolvedRequest, head: HTTPRequest? = nil, isWhereverKept: Bool = false, timeout: Duration? = nil) {
    self.load = load
    self.head = head ?? load.settings.head
    self.isWhereverKept = isWhereverKept
    self.timeout = timeout
    hash = Self.hash(of: self.head, resource: load.settings.resource)
  }

  /// What the answer is filed under, but for redirects.
  var resource: String { load.settings.resource }

  /// What tells nearly all loads apart is enough for a hash; the rest is compared.
  private static func hash(of head: HTTPRequest, resource: String) -> Int {
    var hasher = Hasher()
    hasher.combine(resource)
    // A sum, since equal fields may stand in another order. Without the values, requests that differ in a field alone would all
    // share one hash.
    var fields = 0
    for field in head.headerFields { fields &+= field.value.hashValue }
    hasher.combine(fields)
    return hasher.finalize()
  }

  func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// A hash of the bytes of the resource's name, of the request and of the components. It stands for the key where the key is not
  /// to be held.
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
    // What is stored goes by bytes, which `String`'s `==` does not: resources that are equal as strings may be two.
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

  /// Alternatives are what would be asked of them.
  private static func asksAlike(_ mine: [ResolvedAlternative], _ others: [ResolvedAlternative]) -> Bool {
    mine.elementsEqual(others) { a, b in
      a.kind == b.kind && (try? a.source.get().head) == (try? b.source.get().head)
    }
  }
}

extension RequestSettings {
  /// What answers, keeps and decides.
  fileprivate var components: [ComponentID?] {
    [downloader?.id, memory?.id, store?.id, validator?.id, observer?.id, clockIdentity, redirectHandler?.id]
  }
}
