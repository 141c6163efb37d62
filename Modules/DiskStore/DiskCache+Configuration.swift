public import CacheCore

extension DiskCache {
  /// How much a commit waits for, and so what a loss of power can take. A process that is killed loses nothing that was
  /// committed, whatever the setting.
  public enum Durability: Hashable, Sendable {
    /// The system writes when it likes, mostly within half a minute. An entry that a loss of power cut short is found by its
    /// checksums and is a miss. Costs nothing; right for a cache that can be filled again.
    case none
    /// The file's content is on the disk before it becomes visible: what is found after a loss of power is whole. Costs a flush
    /// of the disk for each commit.
    case file
    /// The folder is on the disk too, so what was committed is found again after a loss of power. Costs two flushes, three or
    /// four where a folder was made, and two more when the store is opened.
    case fileAndFolder
  }

  /// How a ``DiskCache`` is set up.
  public struct Configuration: Sendable {
    /// Bytes that all entries' files in the folder may take together, whoever stored them; nil: no limit. Enforced in the
    /// background right after a commit or a freshening, in the order of ``eviction``, down to 90 %. 512 MiB.
    public var sizeLimit: Int64?
    /// Which entries leave first: when the folder is above its limit, when it is trimmed, and when the disk is full. What
    /// others use in the folder, and what was used before it was opened, it knows as far as
    /// `Modules/DiskStore/DiskStore.docc/DiskStore.md` says.
    public var eviction: any EvictionPolicy
    /// Bytes that one body may have; nil: as many as ``sizeLimit`` has room for. A larger one is refused with
    /// `CacheError.Code.entryTooLarge`, and so is, whatever this says, an entry whose file would take more than 90 % of
    /// ``sizeLimit``: making room for it would remove all others, and then itself.
    public var entrySizeLimit: Int64?
    /// The time to live of entries whose metadata states none. Counts from `StoredMetadata.responseTime`, so a 304 restarts it
    /// and reading does not.
    public var expiration: Expiration
    /// What a commit waits for.
    public var durability: Durability
    /// Where the time comes from.
    public var clock: any CacheClock
    /// How many file operations that look run at once, and how many that store, each in a thread of its own. 1 to 64.
    public var ioWidth: Int
    /// How many operations may wait to be stored, or be under way: commits, pieces of bodies that are written, freshenings. What
    /// comes beyond it is refused at once with `CacheError.Code.overloaded` and counted in ``DiskCounters/refusedWrites``, until
    /// the disk has caught up. 4,096, at least 1.
    public var pendingLimit: Int
    /// Bytes that may wait so, together; a single operation is taken whatever its size when nothing else waits. 64 MiB.
    public var pendingSizeLimit: Int
    /// Whether a body's bytes are compared with their checksums when they are read. Without it a body that the disk has damaged
    /// is handed out as it is, and the read costs little more than the system's. Header, key and metadata are checked all the
    /// same, and ``DiskCache/verify(removingDamaged:)`` checks everything.
    public var checksBodies: Bool

    /// A configuration; see the properties for what they mean.
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

    /// Bytes that are left when the limit has been enforced, and that no entry's file alone may exceed. Below the limit, or each
    /// store would evict.
    var sizeMark: Int64 { sizeLimit.map { $0 / 10 * 9 } ?? .max }

    /// Bytes of the largest body that is taken.
    var bodyLimit: Int64 { min(entrySizeLimit ?? .max, sizeMark, EntryHeader.bodyLimit) }

    func validate() throws(CacheError) {
      try Self.requireNotNegative(sizeLimit, "sizeLimit")
      try Self.requireNotNegative(entrySizeLimit, "entrySizeLimit")
      guard (1...64).contains(ioWidth) else {
        throw CacheError(.invalidConfiguration, reason: "ioWidth is not between 1 and 64: \(ioWidth)")
      }
      guard pendingLimit >= 1, pendingSizeLimit >= 0 else {
        throw CacheError(
          .invalidConfiguration,
          reason: "pendingLimit is below 1, or pendingSizeLimit below 0: \(pendingLimit), \(pendingSizeLimit)")
      }
    }

    private static func requireNotNegative(_ limit: Int64?, _ name: String) throws(CacheError) {
      if let limit, limit < 0 { throw CacheError(.invalidConfiguration, reason: "\(name) is negative: \(limit)") }
    }
  }
}
