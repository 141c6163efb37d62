internal import CacheCore

/// What a cache knows of the index beside the files, and when it is to be written again.
struct IndexFileState: Sendable {
  /// How long nothing must have changed.
  static let quiet = Duration.seconds(5)

  /// What the file bears, when this cache has read or written it and has changed nothing since.
  private(set) var stamp: IndexFile.Stamp?
  /// Waits until nothing changes; nil: nobody does.
  var watch: Task<Void, Never>?
  private var changes: UInt64 = 0
  /// Changes that the watch has seen.
  private var seen: UInt64 = 0
  /// When it was written last, by the clock's uptime.
  private var lastWrite: Duration?

  /// Between two times that it is written: in the long run it costs no more than 56 KB a second, however many entries there are.
  private static func rest(entries: Int) -> Duration { .seconds(max(30, entries / 1000)) }

  /// The file is as the entries are.
  mutating func holds(_ stamp: IndexFile.Stamp) { self.stamp = stamp }

  /// It is about to be.
  mutating func writes(_ stamp: IndexFile.Stamp, at uptime: Duration) { (self.stamp, lastWrite) = (stamp, uptime) }

  mutating func fails() { stamp = nil }

  /// Something was changed.
  ///
  /// - Returns: whether somebody should begin to watch.
  mutating func change() -> Bool {
    stamp = nil
    changes &+= 1
    guard watch == nil else { return false }
    seen = changes
    return true
  }

  /// Whether nothing has changed since the watch looked last, and it is time to write; then it ends.
  mutating func endsWatch(at uptime: Duration, entries: Int) -> Bool {
    defer { seen = changes }
    guard seen == changes, lastWrite.map({ uptime - $0 >= Self.rest(entries: entries) }) ?? true else { return false }
    watch = nil
    return true
  }
}
