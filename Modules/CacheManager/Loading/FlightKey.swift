internal import CacheCore
internal import HTTPTypes

/// Equal for loads that may share one piece of work: everything that can change the answer, or where it is kept.
///
/// An object, since a flight's key is compared with itself far more often than with another's, and lies in several tables.
final class FlightKey: Hashable, Sendable {
  private struct Parts: Equatable, Sendable {
    var head: HTTPRequest
    var resource: String
    var policy: LoadPolicy
    var reads: CacheLayers
    var writes: CacheLayers
    var expiration: Expiration?
    var acceptedStatuses: AcceptedStatuses
    var redirectLimit: Int
    var allowsInsecureRedirects: Bool
    var networkAccess: NetworkAccess
    var maximumBodySize: Int64
    var idleTimeout: Duration?
    var alternatives: [Alternative]
    var components: [ComponentID?]
    var timeout: Duration?
  }

  /// An alternative by what would be asked of it.
  private struct Alternative: Equatable, Sendable {
    var kind: AlternativeSource.Kind
    var head: HTTPRequest?
  }

  private let parts: Parts
  private let hash: Int

  /// - Parameters:
  ///   - load: whose work may be shared.
  ///   - head: of the load's request what tells it apart; nil: all of it.
  ///   - isWhereverKept: equal also for loads that keep the answer elsewhere, or take a larger one.
  ///   - timeout: of the whole transfer, where the first one's is everybody's.
  init(_ load: ResolvedLoad, head: HTTPRequest? = nil, isWhereverKept: Bool = false, timeout: Duration? = nil) {
    parts = Parts(
      head: head ?? load.head, resource: load.parts.resource, policy: load.policy, reads: isWhereverKept ? .all : load.reads,
      writes: isWhereverKept ? .all : load.writes, expiration: load.expiration, acceptedStatuses: load.acceptedStatuses,
      redirectLimit: load.redirectLimit, allowsInsecureRedirects: load.allowsInsecureRedirects,
      networkAccess: load.networkAccess, maximumBodySize: isWhereverKept ? 0 : load.maximumBodySize,
      idleTimeout: load.idleTimeout,
      alternatives: load.alternatives.map { Alternative(kind: $0.kind, head: try? $0.source.get().head) },
      components: [
        load.downloader?.id, load.memory?.id, load.store?.id, load.validator?.id, load.observer?.id, load.clockIdentity,
        load.redirectHandler?.id,
      ],
      timeout: timeout)
    hash = Self.hash(of: parts)
  }

  /// What the answer is filed under, but for redirects.
  var resource: String { parts.resource }

  /// What tells nearly all loads apart is enough for a hash; the rest is compared.
  private static func hash(of parts: Parts) -> Int {
    var hasher = Hasher()
    hasher.combine(parts.resource)
    // A sum, since equal fields may stand in another order. Without the values, requests that differ in a field alone would all share one hash.
    var fields = 0
    for field in parts.head.headerFields { fields &+= field.value.hashValue }
    hasher.combine(fields)
    return hasher.finalize()
  }

  func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  static func == (a: FlightKey, b: FlightKey) -> Bool { a === b || (a.hash == b.hash && a.parts == b.parts) }
}
