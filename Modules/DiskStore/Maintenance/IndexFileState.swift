internal import CacheCore

/// The state of the index file as this cache knows it, and the schedule for its next write.
struct IndexFileState: Sendable {
  /// The time without changes before the file is written.
  static let quiet = Duration.seconds(5)

  /// The stamp of the file, if this cache has read or written it and changed nothing since.
  private(set) var stamp: IndexFile.Stamp?
  /// The task that waits for a quiet period, if any.
  var watch: Task<Void, Never>?
  private var changes: UInt64 = 0
  /// The number of changes at the last check of the task.
  private var seen: UInt64 = 0
  /// The uptime of the last write.
  private var lastWrite: Duration?

  /// Returns the minimum time between two writes, which limits the long-term cost to 56 KB a second for any number of entries.
  private static func rest(entries: Int) -> Duration { .seconds(max(30, entries / 1000)) }

  /// Notes that the file matches the entries.
  mutating func holds(_ stamp: IndexFile.Stamp) { self.stamp = stamp }

  /// Notes that a matching file is about to be written.
  mutating func writes(_ stamp: IndexFile.Stamp, at uptime: Duration) { (self.stamp, lastWrite) = (stamp, uptime) }

  mutating func fails() { stamp = nil }

  /// Notes a change.
  ///
  /// - Returns: Whether a task should start to wait for a quiet period.
  mutating func change() -> Bool {
    stamp = nil
    changes &+= 1
    guard watch == nil else { return false }
    seen = changes
    return true
  }

  /// Whether nothing has changed since the last check and a write is due. If so, the waiting ends.
  mutating func endsWatch(at uptime: Duration, entries: Int) -> Bool {
    defer { seen = changes }
    guard seen == changes, lastWrite.map({ uptime - $0 >= Self.rest(entries: entries) }) ?? true else { return false }
    watch = nil
    return true
  }
}
