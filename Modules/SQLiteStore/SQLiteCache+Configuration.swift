#if SQLite
public import CacheCore

extension SQLiteCache {
  /// How much a commit waits for, and so what a loss of power can take. A process that is killed loses nothing that was
  /// committed, whatever the setting.
  public enum Durability: Hashable, Sendable {
    /// The system writes when it likes; the log is flushed before it is folded into the database (`PRAGMA synchronous = NORMAL`).
    /// A loss of power can take the latest commits, never the database. Right for a cache.
    case checkpoint
    /// What was committed is on the disk (`PRAGMA synchronous = FULL`). Costs a flush for each commit.
    case commit
  }

  /// How a ``SQLiteCache`` is set up.
  public struct Configuration: Sendable {
    /// Bytes that all entries may have together: bodies, metadata and keys; nil: no limit. Enforced within each commit, the least
    /// recently used entry first, so it holds at every instant. The file is larger, by SQLite's own pages and by what waits to be
    /// overwritten. 512 MiB.
    public var sizeLimit: Int64?
    /// Bytes that one body may have; nil: as many as ``sizeLimit`` has room for. A larger one is refused with
    /// `CacheError.Code.entryTooLarge`.
    public var entrySizeLimit: Int64?
    /// The time to live of entries whose metadata states none. Counts from `StoredMetadata.responseTime`, so a 304 restarts it
    /// and reading does not.
    public var expiration: Expiration
    /// What a commit waits for.
    public var durability: Durability
    /// How long a call waits for another process that is writing, before it fails with `CacheError.Code.timedOut`. 5 s.
    public var busyTimeout: Duration
    /// Where the time comes from.
    public var clock: any CacheClock
    /// How many connections read at once, each in a thread of its own; one more writes. 1 to 64.
    public var readers: Int
    /// How many operations may wait to be stored, or be under way: commits, pieces of bodies that are written, freshenings. What
    /// comes beyond it is refused at once with `CacheError.Code.overloaded` and counted in ``SQLiteCounters/refusedWrites``,
    /// until the disk has caught up. 4,096, at least 1.
    public var pendingLimit: Int
    /// Bytes that may wait so, together; a single operation is taken whatever its size when nothing else waits. 64 MiB.
    public var pendingSizeLimit: Int
    /// Pages that the database may have; nil: any number. Stands for a disk that is full, in tests.
    package var pageLimit: Int?

    /// A configuration; see the properties for what they mean.
    public init(
      sizeLimit: Int64? = 512 << 20, entrySizeLimit: Int64? = nil, expiration: Expiration = .never,
      durability: Durability = .checkpoint, busyTimeout: Duration = .seconds(5), clock: any CacheClock = SystemClock(),
      readers: Int = 4, pendingLimit: Int = 4_096, pendingSizeLimit: Int = 64 << 20
    ) {
      self.sizeLimit = sizeLimit
      self.entrySizeLimit = entrySizeLimit
      self.expiration = expiration
      self.durability = durability
      self.busyTimeout = busyTimeout
      self.clock = clock
      self.readers = readers
      self.pendingLimit = pendingLimit
      self.pendingSizeLimit = pendingSizeLimit
    }

    /// Bytes of the largest body that is taken.
    var bodyLimit: Int64 { min(entrySizeLimit ?? .max, sizeLimit ?? .max, ChunkTable.bodyLimit) }

    func validate() throws(CacheError) {
      for (name, limit) in [("sizeLimit", sizeLimit), ("entrySizeLimit", entrySizeLimit)] {
        if let limit, limit < 0 { throw CacheError(.invalidConfiguration, reason: "\(name) is negative: \(limit)") }
      }
      guard busyTimeout >= .zero else {
        throw CacheError(.invalidConfiguration, reason: "busyTimeout is negative: \(busyTimeout)")
      }
      guard (1...64).contains(readers) else {
        throw CacheError(.invalidConfiguration, reason: "readers is not between 1 and 64: \(readers)")
      }
      guard pendingLimit >= 1, pendingSizeLimit >= 0 else {
        throw CacheError(
          .invalidConfiguration,
          reason: "pendingLimit is below 1, or pendingSizeLimit below 0: \(pendingLimit), \(pendingSizeLimit)")
      }
    }
  }
}
#endif
