import CacheTesting

/// The component in front of a fleet that chooses a node for each request. It knows which nodes are lost.
struct Router {
  private let ring: HashRing?
  private let objects: [UInt64]
  private var generator: SplitMix
  private var lost: [Bool]
  /// The node of each object, or `nil` if it is not known for the nodes that are lost now.
  private var known: [Int?]

  /// - Parameter objects: A hash of each object.
  init(_ configuration: FleetConfiguration, objects: [UInt64]) {
    ring =
      configuration.routing == .hash
      ? HashRing(nodes: configuration.nodes, pointsPerNode: configuration.pointsPerNode) : nil
    self.objects = objects
    lost = Array(repeating: false, count: configuration.nodes)
    generator = SplitMix(state: SplitMix.mix(configuration.seed, 1))
    known = ring == nil ? [] : Array(repeating: nil, count: objects.count)
  }

  /// Returns the node for a request, or `nil` if all nodes are lost.
  mutating func node(for object: Int) -> Int? {
    guard let ring else {
      let drawn = Int(generator.next() % UInt64(lost.count))
      guard lost[drawn] else { return drawn }
      let remaining = lost.indices.filter { !lost[$0] }
      return remaining.isEmpty ? nil : remaining[Int(generator.next() % UInt64(remaining.count))]
    }
    if let node = known[object] { return node }
    known[object] = ring.node(for: SplitMix.mix(objects[object], 0), isExcluded: { lost[$0] })
    return known[object]
  }

  func isLost(_ node: Int) -> Bool { lost[node] }

  /// Removes a node, or adds it again. The node of each object is then chosen again.
  mutating func set(_ node: Int, isLost: Bool) {
    lost[node] = isLost
    known = known.map { _ in nil }
  }
}
