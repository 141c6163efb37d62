/// A first-in, first-out queue of the fingerprints and costs of recently evicted entries. Every operation is amortized O(1).
struct GhostQueue: Sendable {
  private struct Ghost {
    var fingerprint: Int
    /// The cost, or -1 if the ghost was removed.
    var cost: Int
  }

  // A ring whose length is a power of two. Positions only increase.
  private var ring: [Ghost] = []
  private var first = 0
  private var end = 0
  private var places = FingerprintTable()
  private(set) var cost = 0

  var count: Int { places.count }

  /// Removes `fingerprint` and returns whether the queue contained it.
  mutating func take(_ fingerprint: Int) -> Bool {
    guard let place = places.first(fingerprint, where: { _ in true }) else { return false }
    drop(place)
    return true
  }

  mutating func push(_ fingerprint: Int, cost: Int) {
    guard places.first(fingerprint, where: { _ in true }) == nil else { return }
    if end - first == ring.count { rebuild() }
    let place = end & (ring.count - 1)
    ring[place] = Ghost(fingerprint: fingerprint, cost: cost)
    places.insert(place, fingerprint)
    self.cost += cost
    end += 1
  }

  /// Removes the oldest ghost.
  mutating func pop() {
    while first < end {
      let place = first & (ring.count - 1)
      first += 1
      if ring[place].cost >= 0 { return drop(place) }
    }
  }

  private mutating func drop(_ place: Int) {
    cost -= ring[place].cost
    places.remove(place, ring[place].fingerprint)
    ring[place].cost = -1
  }

  /// Closes the gaps, and grows the ring if there were few.
  private mutating func rebuild() {
    let ghosts = (first..<end).map { ring[$0 & (ring.count - 1)] }.filter { $0.cost >= 0 }
    let length = ghosts.count * 2 > ring.count ? ring.count * 2 : max(16, ring.count)
    self = GhostQueue()
    ring = [Ghost](repeating: Ghost(fingerprint: 0, cost: -1), count: length)
    for ghost in ghosts { push(ghost.fingerprint, cost: ghost.cost) }
  }
}
