/// What others changed in a folder, by counters that are its own.
struct FolderChanges: Hashable, Sendable {
  /// Which of the counter files that this process has mapped one after the other.
  var serial: UInt64
  var counts: Generation.Counts
}

/// What others used in a folder, by the same counters.
struct FolderUses: Hashable, Sendable {
  var serial: UInt64
  var count: UInt64
}
