#if SQLite
/// What looks found in a database that is to be cleared away.
struct CleanupQueue: Sendable {
  let opening: DatabaseFile.Opening
  var expired: Set<Int64> = []
  var damaged: Set<Int64> = []

  init(in opening: DatabaseFile.Opening) { self.opening = opening }

  var isEmpty: Bool { expired.isEmpty && damaged.isEmpty }

  /// The same with those of another look. Of a database that another one has replaced there is nothing to clear away.
  func joined(_ others: CleanupQueue) -> CleanupQueue {
    guard opening === others.opening else { return others }
    var all = self
    all.expired.formUnion(others.expired)
    all.damaged.formUnion(others.damaged)
    return all
  }
}
#endif
