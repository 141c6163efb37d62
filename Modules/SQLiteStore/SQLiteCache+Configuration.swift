#if SQLite
public import CacheCore

extension SQLiteCache {
  /// The data that a commit flushes, which determines what a power failure can lose. A killed process never loses a committed
  /// entry.
  public enum Durability: Hashable, Sendable {
    /// The system writes the data when it chooses, and the log is flushed before it is merged into the database
    /// (`PRAGMA synchronous = NORMAL`). A power failure can lose the latest commits, but never the database. This setting suits a
    /// cache.
    case checkpoint
    /// Each commit is flushed to the disk before it returns (`PRAGMA synchronous = FULL`). It costs one flush per commit.
    case commit
  }

  /// The settings of a ``SQLiteCache``.
  public struct Configuration: Sendable {
    /// The maximum total size in bytes of all entries (bodies, metadata and keys), or `nil` for no limit. Each commit enforces it
    /// by evicting the least recently used entries, so it is never exceeded. The file is larger because of SQLite's own pages and
    /// free pages. The default is 512 MiB.
    public var sizeLimit: Int64?
    /// The maximum size of one body in bytes, or `nil` for as much as ``sizeLimit`` allows. A larger body is refused with
    /// `CacheError.Code.entryTooLarge`.
    public var entrySizeLimit: Int64?
    /// The time to live of entries whose metadata states none. It counts from `StoredMetadata.responseTime`, so a 304 restarts it
    /// and a read does not.
    public var expiration: Expiration
    /// The data that a commit flushes before it returns.
    public var durability: Durability
    /// The time a call waits for another process that is writing, before it fails with `CacheError.Code.timedOut`. The default is
    /// 5 s.
    public var busyTimeout: Duration
    /// The clock for expiration and for the times of uses.
    public var clock: any CacheClock
    /// The number of reading connections, each with its own thread, from 1 to 64. One further connection writes. The default is
    /// 4.
    public var readers: Int
    /// The maximum number of write operations that wait or run: commits, body chunks and metadata updates. Further ones are
    /// refused with `CacheError.Code.overloaded` until the disk has caught up, and counted in ``SQLiteCounters/refusedWrites``.
    /// The minimum is 1 and the default 4,096.
    public var pendingLimit: Int
    /// The maximum total size in bytes of the write operations that wait or run. A single larger operation is accepted while no
    /// other one waits. The default is 64 MiB.
    public var pendingSizeLimit: Int
    /// The maximum number of pages in the database, or `nil` for no limit. Tests use it to simulate a full disk.
    package var pageLimit: Int?

    /// Creates a configuration.
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

    /// The size in bytes of the largest accepted body.
    var bodyLimit: Int64 { min(entrySizeLimit ?? .max, sizeLimit ?? .max, ChunkTable.bodyLimit) }

    func validate() throws(CacheError) {
      try CacheError.require("sizeLimit", sizeLimit, in: 0...)
      try CacheError.require("entrySizeLimit", entrySizeLimit, in: 0...)
      try CacheError.require("busyTimeout", busyTimeout, in: .zero...)
      try CacheError.require("readers", readers, in: 1...64)
      try CacheError.require("pendingLimit", pendingLimit, in: 1...)
      try CacheError.require("pendingSizeLimit", pendingSizeLimit, in: 0...)
    }
  }
}
#endif
