/// The number of changes in a folder by other caches.
struct FolderChanges: Hashable, Sendable {
  /// The number of the open counter file, in the order in which this cache opened them.
  var serial: UInt64
  var counts: Generation.Counts
}

/// The number of uses in a folder by other caches.
struct FolderUses: Hashable, Sendable {
  var serial: UInt64
  var count: UInt64
}
