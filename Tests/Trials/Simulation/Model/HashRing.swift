import CacheTesting

/// Consistent hashing (Karger et al., STOC '97): each node has many points on a ring, and an object belongs to the node of the
/// next point.
struct HashRing {
  private let points: [(hash: UInt64, node: Int)]

  /// Creates a ring. The complexity is O(*p* log *p*) for *p* points.
  ///
  /// - Parameters:
  ///   - nodes: The number of nodes, at least 1.
  ///   - pointsPerNode: The number of points of each node. More points divide the objects more evenly.
  init(nodes: Int, pointsPerNode: Int) {
    points = (0..<nodes).flatMap { node in
      (0..<pointsPerNode).map { (SplitMix.mix(UInt64(node), UInt64($0)), node) }
    }
    .sorted { $0 < $1 }
  }

  /// Returns the node of an object. An excluded node's objects go to the nodes of the next points, and no other object moves.
  ///
  /// - Returns: `nil` if all nodes are excluded.
  func node(for object: UInt64, isExcluded: (Int) -> Bool) -> Int? {
    var (low, high) = (0, points.count)
    while low < high {
      let middle = (low + high) / 2
      if points[middle].hash < object { low = middle + 1 } else { high = middle }
    }
    for offset in 0..<points.count {
      let node = points[(low + offset) % points.count].node
      if !isExcluded(node) { return node }
    }
    return nil
  }
}
