internal import CacheCore

extension EntryIndex {
  /// The known facts about one entry.
  struct Use: Sendable {
    /// The maximum number of uses that is counted.
    static let mostUses: UInt8 = 3

    /// The space in bytes that the file occupies, capped at ``IndexFile/sizeLimit``; see ``FileStatus/allocatedSize(of:)``.
    private(set) var size: Int64
    var last: Timestamp
    /// The number of known uses since the entry was stored, capped at ``mostUses``.
    var uses: UInt8
    /// The slot in the ``EvictionOrder``, or -1 for none.
    var slot: Int32 = -1

    init(size: Int64, last: Timestamp, uses: UInt8 = 0) {
      (self.size, self.last, self.uses) = (Self.counted(size), last, min(uses, Self.mostUses))
    }

    init(_ status: FileStatus) { self.init(size: status.allocatedSize, last: status.modified) }

    private static func counted(_ size: Int64) -> Int64 { min(max(size, 0), IndexFile.sizeLimit) }

    mutating func resize(to size: Int64) { self.size = Self.counted(size) }

    mutating func use(at time: Timestamp) {
      last = time
      if uses < Self.mostUses { uses += 1 }
    }
  }
}
