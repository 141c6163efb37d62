internal import CacheCore
internal import HTTPTypes

/// How a request waits for an equal one, and what it has learnt while it did.
struct Collapsing: Sendable {
  /// How long it waits; nil: not at all.
  var limit: Duration?
  /// Fields, in lower case, that have been seen to select an answer of the resource.
  private var selecting: Set<String> = ["authorization"]
  /// How often it has begun anew.
  private var rounds = 0

  init(limit: Duration?) { self.limit = limit.flatMap { $0 > .zero ? $0 : nil } }

  /// The same request, after it has waited for what was of no use to it. Not for ever: the third time it asks for itself.
  func again(knowing metadata: StoredMetadata?) -> Collapsing {
    var next = self
    if let metadata { next.selecting.formUnion(metadata.response.headerFields.selecting) }
    next.rounds += 1
    if next.rounds == 3 { next.limit = nil }
    return next
  }

  /// Equal for requests that may get one answer: of one resource, by the same components, with equal selecting fields as far as they are known.
  func key(of load: ResolvedLoad, _ candidates: [Candidate]) -> FlightKey {
    let names = candidates.reduce(into: selecting) { $0.formUnion($1.metadata.response.headerFields.selecting) }
    var key = FlightKey(load)
    key.head.method = .get
    key.head.headerFields = key.head.headerFields.filter { names.contains($0.name.canonicalName) }
    return key
  }
}

extension HTTPFields {
  /// The names in `Vary`, in lower case.
  fileprivate var selecting: [String] {
    self[values: .vary].flatMap { $0.split { $0 == "," || $0 == " " || $0 == "\t" } }.map { $0.lowercased() }
  }
}
