#if SQLite
/// The entries of one database that lookups found to be removed.
struct CleanupQueue: Sendable {
  let opening: DatabaseFile.Opening
  var expired: Set<Int64> = []
  var damaged: Set<Int64> = []

  init(in opening: DatabaseFile.Opening) { self.opening = opening }

  var isEmpty: Bool { expired.isEmpty && damaged.isEmpty }

  /// Returns the union with another queue. Entries of a replaced database need no removal.
  func joined(_ others: CleanupQueue) -> CleanupQueue {
    guard opening === others.opening else { return others }
    var all = self
    all.expired.formUnion(others.expired)
    all.damaged.formUnion(others.damaged)
    return all
  }
}
#endif
