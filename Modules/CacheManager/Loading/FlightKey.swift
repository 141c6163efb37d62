internal import CacheCore
internal import HTTPTypes

/// Equal for loads that may share one piece of work: everything that can change the answer, or where it is kept.
struct FlightKey: Hashable, Sendable {
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

  /// An alternative by what would be asked of it.
  struct Alternative: Hashable, Sendable {
    var kind: AlternativeSource.Kind
    var head: HTTPRequest?
  }

  /// What tells nearly all loads apart is enough for a hash; the rest is compared.
  func hash(into hasher: inout Hasher) {
    hasher.combine(resource)
    hasher.combine(head.headerFields.count)
  }

  init(_ load: ResolvedLoad) {
    head = load.head
    resource = load.parts.resource
    policy = load.policy
    reads = load.reads
    writes = load.writes
    expiration = load.expiration
    acceptedStatuses = load.acceptedStatuses
    redirectLimit = load.redirectLimit
    allowsInsecureRedirects = load.allowsInsecureRedirects
    networkAccess = load.networkAccess
    maximumBodySize = load.maximumBodySize
    idleTimeout = load.idleTimeout
    alternatives = load.alternatives.map { Alternative(kind: $0.kind, head: try? $0.source.get().head) }
    components = [
      load.downloader?.id, load.memory?.id, load.store?.id, load.validator?.id, load.observer?.id, load.clockIdentity,
      load.redirectHandler?.id,
    ]
  }
}
