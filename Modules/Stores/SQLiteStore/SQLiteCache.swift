#if SQLite
public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A durable store in a single SQLite database, for caches that need one file or a database's tools.
///
/// ```swift
/// let cache = try SQLiteCache(folder: url, configuration: .init(sizeLimit: 1 << 30))
/// try await cache.store(bytes, for: key, metadata: metadata)
/// if let entry = try await cache.entry(for: key) { print(try await entry.body.collect().count) }
/// ```
///
/// Bodies are stored in chunks of 64 KiB, each with a checksum. One transaction makes an entry visible and replaces the one
/// before it. Several caches, in one process or in many, can share a folder. A damaged or deleted database is recreated.
///
/// No call blocks its caller: the database's connections have their own threads. Cancelling the calling task does not interrupt a
/// call.
public final class SQLiteCache: CacheStore {
  let engine: SQLiteEngine

  /// Creates a cache in `folder`, and the folder if it does not exist. The database is `etagere-1.sqlite`, with the files that
  /// SQLite puts beside it. Other files in the folder are not changed.
  ///
  /// The initializer opens the database on the caller's thread. A damaged database is recreated and counted in
  /// ``SQLiteCounters/resets``.
  ///
  /// - Throws: `CacheError.Code.unsupported` if the database belongs to another version or another program; it is not changed.
  ///   `CacheError.Code.fileSystem`, `CacheError.Code.diskFull` or `CacheError.Code.readOnly`, with the path, if it cannot be
  ///   opened or created. `CacheError.Code.timedOut` if it stays locked by another process.
  ///   `CacheError.Code.invalidConfiguration` if a setting or the URL is invalid.
  public convenience init(folder: URL, configuration: Configuration = Configuration()) throws(CacheError) {
    guard folder.isFileURL else {
      throw CacheError(.invalidConfiguration, reason: "the URL of a store's folder is not a file URL", url: folder.absoluteString)
    }
    try self.init(path: folder.path(percentEncoded: false), configuration: configuration)
  }

  /// Creates a cache in the folder at `path`; see ``init(folder:configuration:)``.
  public init(path: String, configuration: Configuration = Configuration()) throws(CacheError) {
    try configuration.validate()
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "the path of a store's folder is empty or contains NUL", path: path)
    }
    let folder = URL(filePath: path, directoryHint: .isDirectory)
    engine = try SQLiteEngine(folder.appending(path: "etagere-1.sqlite").path(percentEncoded: false), configuration)
    // An open database has a secret of 16 bytes.
    digestSecret = DigestSecret(bytes: engine.file.secret) ?? .random()
    // Two custom clocks cannot be compared, so only caches on the system clock can have equal identifiers.
    id =
      configuration.clock is SystemClock
      ? ComponentID(SQLiteCache.self, parameters: "\(configuration.expiration) \(engine.file.path)")
      : .unique(SQLiteCache.self)
    engine.startCollecting()
  }

  /// An identifier that is equal for caches with the same database and time to live that use the system clock.
  public let id: ComponentID

  /// The secret for the validator, which stays the same for the database's lifetime, in every process.
  ///
  /// It keys the digests of secret request fields in variants, so variants stay comparable after a restart.
  public let digestSecret: DigestSecret

  /// The path of the database.
  public var path: String { engine.file.path }

  /// The configuration that the cache was created with.
  public var configuration: Configuration { engine.configuration }

  /// The operations of this cache since it was created.
  public var counters: SQLiteCounters { engine.counters }
}

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
    var bodyLimit: Int64 { min(entrySizeLimit ?? .max, sizeLimit ?? .max, ChunkRow.bodyLimit) }

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

extension SQLiteCache {
  /// The total size in bytes of all entries (bodies, metadata and keys), including those of other processes. The database
  /// maintains it, so this is a single query.
  public var totalSize: Int64 {
    get async throws(CacheError) { try await engine.file.read { database, _ in try EntryTable.total(database).bytes } }
  }

  /// The number of entries; see ``totalSize``.
  public var entryCount: Int {
    get async throws(CacheError) { try await engine.file.read { database, _ in try EntryTable.total(database).entries } }
  }

  public func usage() async throws(CacheError) -> StoreUsage? {
    let total = try await engine.file.read { database, _ in try EntryTable.total(database) }
    return StoreUsage(entries: Int(total.entries), bytes: total.bytes, limit: configuration.sizeLimit)
  }

  /// Removes the least recently used entries until the total size is at most `size` bytes. With zero or less, none remains.
  ///
  /// - Returns: The number of removed entries.
  @discardableResult
  public func trim(to size: Int64) async throws(CacheError) -> Int { try await engine.trim(to: size) }

  /// Removes the entries whose time to live has passed. It reads the metadata of every entry.
  ///
  /// - Returns: The number of removed entries.
  @discardableResult
  public func removeExpired() async throws(CacheError) -> Int { try await engine.removeExpired() }

  /// Waits for all work in progress and closes the file. Further calls and reads from open bodies throw `CacheError.Code.closed`.
  public func close() async { await engine.close() }
}

extension SQLiteCache {
  /// Returns the variants of a resource. Bodies of up to 128 KiB are in memory and already checked.
  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await engine.variants(of: resource)
  }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await engine.transforms(of: resource)
  }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await engine.entry(for: key, range: range)
  }

  /// Looks up all keys in one transaction, so the results belong to the same moment.
  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    try await engine.values(for: keys)
  }

  /// Starts an entry. Up to 512 KiB of its body stay in memory. A larger body goes into the database, where lookups do not find
  /// it before the commit.
  ///
  /// - Throws: `CacheError.Code.closed`, `CacheError.Code.overloaded` while too many stores wait, or
  ///   `CacheError.Code.entryTooLarge` if the metadata states a length above the limit.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    guard !engine.file.isClosed else { throw CacheError(.closed, reason: "the store is closed", path: engine.file.path) }
    guard engine.backlog.hasCapacity else {
      engine.count { $0.refusedWrites += 1 }
      throw engine.overload
    }
    return try SpooledWriter(metadata, SQLiteEntryStorage(key, metadata.revision, engine))
  }

  /// Rewrites the entry's row, whatever the size of the body. The metadata has the revision and body length of the stored entry.
  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision revision: Revision)
    async throws(CacheError) -> Bool
  {
    do throws(CacheError) {
      return try await engine.updateMetadata(of: key, to: metadata, ifRevision: revision)
    } catch {
      if error.code == .overloaded { engine.count { $0.refusedWrites += 1 } }
      throw error
    }
  }

  public func remove(_ key: CacheKey, ifRevision revision: Revision?) async throws(CacheError) {
    try await engine.remove(key, ifRevision: revision)
  }

  /// Removes every entry committed before the call. A writer that began before the call and commits after it keeps its entry.
  ///
  /// The bytes are deleted in the background. Those of bodies above 128 KiB are deleted a minute later, because another process
  /// may be reading them.
  public func removeAll() async throws(CacheError) {
    try await engine.removeAll()
  }

  /// Returns the wanted entries. It reads the metadata of every entry.
  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await engine.entries(where: isWanted)
  }
}

/// The number of operations of a ``SQLiteCache`` since it was created.
public struct SQLiteCounters: Hashable, Sendable {
  /// Lookups that found an entry.
  public var hits = 0
  /// Lookups that found no entry, or only an expired or damaged one.
  public var misses = 0
  /// Entries found damaged. Each also counts as a miss unless its body had begun to stream.
  public var damaged = 0
  /// Removals by reason.
  public var evictions: [EvictionReason: Int] = [:]
  /// Entries that were committed.
  public var writes = 0
  /// Entries whose write or commit failed.
  public var failedWrites = 0
  /// Entries, body chunks and metadata updates that were refused because too many stores were waiting.
  public var refusedWrites = 0
  /// Databases that were damaged or missing and were recreated.
  public var resets = 0

  /// Creates counters that are all zero.
  public init() {}
}
#endif
