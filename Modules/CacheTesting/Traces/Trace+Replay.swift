package import CacheCore

extension Trace {
  /// The results of a replay.
  package struct Outcome: Sendable {
    package private(set) var requests = 0
    package private(set) var hits = 0
    package private(set) var bytes = 0
    package private(set) var hitBytes = 0

    package init() {}

    /// Hits divided by requests, from 0 to 1.
    package var objectRatio: Double { requests > 0 ? Double(hits) / Double(requests) : 0 }
    /// Hit bytes divided by requested bytes, from 0 to 1.
    package var byteRatio: Double { bytes > 0 ? Double(hitBytes) / Double(bytes) : 0 }

    package mutating func add(_ request: Request, isHit: Bool) {
      requests += 1
      bytes += request.size
      guard isHit else { return }
      hits += 1
      hitBytes += request.size
    }
  }

  /// A hash of the keys that is equal in each run. A policy's decisions, and therefore the hit ratio, depend on it.
  private static let keyHash = {
    var generator = SplitMix(state: 1)
    return KeyHash(using: &generator)
  }()

  /// Looks up each object, and stores it after a miss with its size as the cost.
  package func replay(into store: some MemoryStoring) -> Outcome {
    var outcome = Outcome()
    let revision = Revision(high: 0, low: 1)
    for request in requests {
      let key = CacheKey(resource: String(request.object), hashedBy: Self.keyHash)
      let isHit = store.entry(for: key) != nil
      outcome.add(request, isHit: isHit)
      if !isHit { store.insert(MemoryEntry(request.object, cost: request.size, revision: revision), for: key) }
    }
    return outcome
  }
}
