internal import CacheCore

/// What an ``EntryIndex`` keeps behind its lock.
struct EntryIndexState {
  /// Misses that may ask the file system before the files are listed on their account.
  static let fewest = 64

  var entries = EntryShelves()
  /// Lists that have ended.
  var lists: UInt64 = 0
  /// Entries that changed since the list was begun; nil when none is being made.
  var touched: Set<EntryName>?
  /// Resources of which an entry is on its way to its place. One at most for each: a resource's files are worked on in one lane.
  var placing: Set<NameDigest> = []
  /// Names, by resource, at which nobody knows what lies until the next list.
  private(set) var doubted: [NameDigest: Set<EntryName>] = [:]
  /// Uses that the list under way, or the first one, does not know of.
  var early: [EntryName: Timestamp] = [:]
  var isComplete = false
  var isClosed = false
  /// What others had changed when the last list was begun; nil: the files must be listed.
  var listed: FolderChanges?
  /// Entries, and their bytes, that were stored since then.
  var stores: UInt64 = 0
  var storedBytes: Int64 = 0
  /// Misses since then that had to ask the file system.
  var blindMisses = 0
  var isListWanted = false

  mutating func set(_ name: EntryName, _ use: EntryIndex.Use?) {
    entries.set(name, use)
    touched?.insert(name)
  }

  mutating func doubt(_ name: EntryName, _ isDoubted: Bool = true) {
    if isDoubted {
      doubted[name.resource, default: []].insert(name)
    } else if doubted[name.resource]?.remove(name) != nil, doubted[name.resource]?.isEmpty == true {
      doubted[name.resource] = nil
    }
  }

  /// Whether what the index says of a resource is so.
  func vouches(for resource: NameDigest, _ changes: FolderChanges?) -> Bool {
    guard isComplete, !isClosed, let changes, changes == listed, changes.counts.isQuiet, !placing.contains(resource) else {
      return false
    }
    return doubted[resource] == nil
  }
}
