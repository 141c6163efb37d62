internal import CacheCore

extension EntryIndex {
  /// What is known of one entry.
  struct Use: Sendable {
    /// More are not told apart.
    static let mostUses: UInt8 = 3

    /// Bytes; ``IndexFile/sizeLimit`` stands for more. No entry is larger, but a file with a hole may say any size of itself.
    private(set) var size: Int64
    var last: Timestamp
    /// How often it was used since it came, as far as that is known; ``mostUses`` stands for more.
    var uses: UInt8
    /// Where it stands in the ``EvictionOrder``; -1: nowhere.
    var slot: Int32 = -1

    init(size: Int64, last: Timestamp, uses: UInt8 = 0) {
      (self.size, self.last, self.uses) = (Self.counted(size), last, min(uses, Self.mostUses))
    }

    init(_ status: FileStatus) { self.init(size: status.size, last: status.modified) }

    private static func counted(_ size: Int64) -> Int64 { min(max(size, 0), IndexFile.sizeLimit) }

    mutating func resize(to size: Int64) { self.size = Self.counted(size) }

    mutating func use(at time: Timestamp) {
      last = time
      if uses < Self.mostUses { uses += 1 }
    }
  }
}
