public import CacheCore

extension DiskCache {
  /// The data that a commit flushes, which determines what a power failure can lose. A killed process never loses a committed
  /// entry.
  public enum Durability: Hashable, Sendable {
    /// The system writes the data when it chooses, usually within 30 seconds. Checksums detect an entry cut short by a power
    /// failure, which is then a miss. This setting costs nothing and suits a cache that can be refilled.
    case none
    /// The file's content is flushed before the entry becomes visible, so every entry found after a power failure is intact. It
    /// costs one disk flush per commit.
    case file
    /// The folder is flushed too, so committed entries are still found after a power failure. It costs two flushes per commit,
    /// three or four if a folder was created, and two more when the store is opened.
    case fileAndFolder
  }

  /// The settings of a ``DiskCache``.
  public struct Configuration: Sendable {
    /// The maximum space in bytes that all entry files in the folder occupy, including those of other caches, or `nil` for no
    /// limit. Each file counts in whole blocks of 4 KiB; see <doc:/DiskStore>.
    ///
    /// A commit or metadata update that exceeds it starts an eviction in the background, in the order of ``eviction``, down to 90
    /// %. The eviction never removes the entry of that commit. The default is 512 MiB.
    public var sizeLimit: Int64?
    /// The policy that chooses the entries to evict when the folder exceeds its limit, when it is trimmed, and when the disk is
    /// full. <doc:/DiskStore> describes how it learns of uses by other caches and before opening.
    public var eviction: any EvictionPolicy
    /// The maximum size of one body in bytes, or `nil` for as much as ``sizeLimit`` allows. A larger body is refused with
    /// `CacheError.Code.entryTooLarge`. So is an entry whose file would exceed 90 % of ``sizeLimit``, because storing it would
    /// evict every other entry and then itself.
    public var entrySizeLimit: Int64?
    /// The time to live of entries whose metadata states none. It counts from `StoredMetadata.responseTime`, so a 304 restarts it
    /// and a read does not.
    public var expiration: Expiration
    /// The data that a commit flushes before it returns.
    public var durability: Durability
    /// The clock for expiration and for the times of uses.
    public var clock: any CacheClock
    /// The number of threads for reads, and of further threads for writes, from 1 to 64. The default is 4.
    public var ioWidth: Int
    /// The maximum number of write operations that wait or run: commits, body chunks and metadata updates. Further ones are
    /// refused with `CacheError.Code.overloaded` until the disk has caught up, and counted in ``DiskCounters/refusedWrites``. The
    /// minimum is 1 and the default 4,096.
    public var pendingLimit: Int
    /// The maximum total size in bytes of the write operations that wait or run. A single larger operation is accepted while no
    /// other one waits. The default is 64 MiB.
    public var pendingSizeLimit: Int
    /// Whether reads compare a body's bytes with their checksums. Without the comparison, a read costs little more than the
    /// system call but returns body bytes that the disk has damaged. Header, key and metadata are always checked, and
    /// ``DiskCache/verify(removingDamaged:)`` checks everything.
    public var checksBodies: Bool

    /// Creates a configuration.
    public init(
      sizeLimit: Int64? = 512 << 20, eviction: any EvictionPolicy = S3FIFO(), entrySizeLimit: Int64? = nil,
      expiration: Expiration = .never,
      durability: Durability = .none,
      clock: any CacheClock = SystemClock(), ioWidth: Int = 4, pendingLimit: Int = 4_096, pendingSizeLimit: Int = 64 << 20,
      checksBodies: Bool = true
    ) {
      self.sizeLimit = sizeLimit
      self.eviction = eviction
      self.entrySizeLimit = entrySizeLimit
      self.expiration = expiration
      self.durability = durability
      self.clock = clock
      self.ioWidth = ioWidth
      self.pendingLimit = pendingLimit
      self.pendingSizeLimit = pendingSizeLimit
      self.checksBodies = checksBodies
    }

    /// The size in bytes at which an eviction stops, which is also the maximum size of one entry's file. It is below the limit so
    /// that not every store evicts.
    var sizeMark: Int64 { sizeLimit.map { $0 / 10 * 9 } ?? .max }

    /// The size in bytes of the largest accepted body.
    var bodyLimit: Int64 { min(entrySizeLimit ?? .max, sizeMark, EntryHeader.bodyLimit) }

    func validate() throws(CacheError) {
      try Self.requireNotNegative(sizeLimit, "sizeLimit")
      try Self.requireNotNegative(entrySizeLimit, "entrySizeLimit")
      guard (1...64).contains(ioWidth) else {
        throw CacheError(.invalidConfiguration, reason: "ioWidth must be between 1 and 64, not \(ioWidth)")
      }
      guard pendingLimit >= 1, pendingSizeLimit >= 0 else {
        throw CacheError(
          .invalidConfiguration,
          reason: "pendingLimit must be at least 1 and pendingSizeLimit at least 0, not \(pendingLimit) and \(pendingSizeLimit)")
      }
    }

    private static func requireNotNegative(_ limit: Int64?, _ name: String) throws(CacheError) {
      if let limit, limit < 0 { throw CacheError(.invalidConfiguration, reason: "\(name) must not be negative: \(limit)") }
    }
  }
}
