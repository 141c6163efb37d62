public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A durable store in a folder, with one checksummed file per entry.
///
/// ```swift
/// let cache = try DiskCache(folder: url, configuration: .init(sizeLimit: 1 << 30))
/// try await cache.store(bytes, for: key, metadata: metadata)
/// if let entry = try await cache.entry(for: key) { print(try await entry.body.collect().count) }
/// ```
///
/// Several caches, in one process or in many, can share a folder. An entry becomes visible with one rename, so a killed process
/// leaves committed entries readable and no partial ones. A commit never evicts its own entry. A damaged file is a miss and is
/// removed. The cache changes nothing outside the subfolder `etagere-1`. <doc:DiskFormat> describes the files.
///
/// While the system can suspend the process, a cache in an app group only reads, and changes throw
/// `CacheError.Code.storeUnavailable`; see <doc:/DiskStore#App-groups>.
///
/// No call blocks its caller: file operations run on the cache's own threads (``Configuration/ioWidth``). Cancelling the calling
/// task does not interrupt a file operation.
public final class DiskCache: CacheStore {
  let engine: DiskEngine

  /// Creates a cache in `folder`, and the folder if it does not exist. In a read-only folder, reading works and writing throws
  /// `CacheError.Code.readOnly`.
  ///
  /// The initializer creates or reads a few small files on the caller's thread. Entries are counted later, in the background. If
  /// another process is creating the same folder, the initializer waits up to two seconds for it.
  ///
  /// A folder `etagere-1` that another user owns or can write to is refused; see <doc:/DiskStore>.
  ///
  /// - Throws: `CacheError.Code.unsupported` if a later version of this package has made the folder; it is not changed.
  ///   `CacheError.Code.fileSystem` or `CacheError.Code.diskFull`, with path and error number, if the path is not a
  ///   folder, cannot be created or read, or stays locked by another process. `CacheError.Code.invalidConfiguration` if a setting
  ///   or the URL is invalid.
  public convenience init(folder: URL, configuration: Configuration = Configuration()) throws(CacheError) {
    guard folder.isFileURL else {
      throw CacheError(.invalidConfiguration, reason: "the URL of a store's folder is not a file URL", url: folder.absoluteString)
    }
    try self.init(path: folder.path(percentEncoded: false), configuration: configuration)
  }

  /// Creates a cache in the folder at `path`; see ``init(folder:configuration:)``.
  public convenience init(path: String, configuration: Configuration = Configuration()) throws(CacheError) {
    try self.init(path: path, configuration: configuration, calls: .system)
  }

  /// Creates a cache whose system calls a test can make fail.
  package init(path: String, configuration: Configuration, calls: FileCalls) throws(CacheError) {
    try configuration.validate()
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "the path of a store's folder is empty or contains NUL", path: path)
    }
    engine = try DiskEngine(path, configuration, calls)
    // Two custom clocks cannot be compared, so only caches on the system clock can have equal identifiers.
    id =
      configuration.clock is SystemClock
      ? ComponentID(DiskCache.self, parameters: "\(configuration.expiration.text) \(engine.folder.parent)")
      : .unique(DiskCache.self)
    engine.executor.start(.maintenance) { [engine] in engine.settle() }
  }

  /// An identifier that is equal for caches with the same folder and time to live that use the system clock.
  public let id: ComponentID

  /// The path of the folder, with symbolic links resolved.
  public var path: String { engine.folder.parent }

  /// The configuration that the cache was created with.
  public var configuration: Configuration { engine.configuration }

  /// Whether entries can be stored and removed, according to the current permissions and the file system.
  public var isWritable: Bool { engine.folder.isWritable }

  /// The operations of this cache since it was created.
  public var counters: DiskCounters { engine.counters }

  /// The number of stores that are waiting or in progress.
  package var pendingStores: Int { engine.executor.pendingStores }

  /// The secret for the validator, which stays the same for the folder's lifetime, in every process.
  ///
  /// It keys the digests of secret request fields in variants, so variants stay comparable after a restart.
  public var digestSecret: DigestSecret { FolderKey.digestSecret(engine.folder.key) }
}

extension Expiration {
  /// A hand-written description: the synthesized one uses reflection, which took a third of the time to open a folder.
  fileprivate var text: String {
    switch self {
    case .never: "never"
    case .after(let duration): "after \(duration.components.seconds) \(duration.components.attoseconds)"
    case .at(let time): "at \(time.nanoseconds)"
    }
  }
}

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
      try CacheError.require("sizeLimit", sizeLimit, in: 0...)
      try CacheError.require("entrySizeLimit", entrySizeLimit, in: 0...)
      try CacheError.require("ioWidth", ioWidth, in: 1...64)
      try CacheError.require("pendingLimit", pendingLimit, in: 1...)
      try CacheError.require("pendingSizeLimit", pendingSizeLimit, in: 0...)
    }
  }
}

extension DiskCache {
  /// The space in bytes that all entry files occupy, including those of other processes, as counted towards
  /// ``Configuration/sizeLimit``.
  ///
  /// The total comes from memory. The files are listed first if they were not listed yet or if another process has changed the
  /// folder, in time proportional to their number.
  public var totalSize: Int64 {
    get async throws(CacheError) { try await performMaintenance { engine throws(CacheError) in try engine.sum().size } }
  }

  /// The number of entries; see ``totalSize``.
  public var entryCount: Int {
    get async throws(CacheError) { try await performMaintenance { engine throws(CacheError) in try engine.sum().count } }
  }

  public func usage() async throws(CacheError) -> StoreUsage? {
    let limit = configuration.sizeLimit
    return try await performMaintenance { engine throws(CacheError) in
      let sum = try engine.sum()
      return StoreUsage(entries: sum.count, bytes: sum.size, limit: limit)
    }
  }

  /// Reads every entry and checks every byte.
  ///
  /// - Parameter removingDamaged: Whether damaged files are removed, as a read would do.
  public func verify(removingDamaged: Bool = false) async throws(CacheError) -> VerificationReport {
    try await performMaintenance { engine throws(CacheError) in try engine.verify(removingDamaged: removingDamaged) }
  }

  /// Checks every byte, removes damaged files and the temporary files of processes that have ended, resets counters that such a
  /// process left unequal, and counts the entries again.
  ///
  /// Other caches may use the folder meanwhile, in this process or another. Entries of a later format version are not changed.
  ///
  /// - Throws: `CacheError.Code.readOnly` if the cache cannot change the folder, and the errors of listing it.
  @discardableResult
  public func repair() async throws(CacheError) -> VerificationReport {
    try await performMaintenance { engine throws(CacheError) in try engine.repair() }
  }

  /// Removes entries in the order of ``Configuration/eviction`` until their total size is at most `size` bytes. With zero or
  /// less, none remains, except for files that cannot be removed.
  ///
  /// - Returns: The number of removed entries.
  @discardableResult
  public func trim(to size: Int64) async throws(CacheError) -> Int {
    try await performMaintenance { engine throws(CacheError) in try engine.trim(to: size) }
  }

  /// Removes the entries whose time to live has passed. It reads a part of every file.
  ///
  /// - Returns: The number of removed entries.
  @discardableResult
  public func removeExpired() async throws(CacheError) -> Int {
    try await performMaintenance { engine throws(CacheError) in try engine.removeExpired() }
  }

  /// Waits for all work in progress. Further calls and reads from open bodies throw `CacheError.Code.closed`.
  public func close() async {
    engine.index.close()
    engine.startupGate.end()
    await engine.executor.close()
    // Nothing changes the folder any more, so the index written now describes its final state.
    engine.executor.start(.maintenance, whenClosed: true) { [engine] in engine.saveIndex() }
    await engine.executor.close()
  }

  func performMaintenance<Value: Sendable>(
    _ work: @escaping @Sendable (DiskEngine) throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    engine.startupGate.end()
    return try await engine.executor.run(.maintenance) { [engine] () throws(CacheError) in try work(engine) }
  }
}

/// The number of operations of a ``DiskCache`` since it was created.
public struct DiskCounters: Hashable, Sendable {
  /// Lookups that found an entry.
  public var hits = 0
  /// Lookups that found no entry, or only an expired or damaged one.
  public var misses = 0
  /// Files found damaged. Each also counts as a miss unless its body had begun to stream.
  public var damaged = 0
  /// Removals by reason.
  public var evictions: [EvictionReason: Int] = [:]
  /// Entries that were committed.
  public var writes = 0
  /// Entries whose write or commit failed.
  public var failedWrites = 0
  /// Entries and metadata updates that were refused because too many stores were waiting; see
  /// ``DiskCache/Configuration/pendingLimit``.
  public var refusedWrites = 0
  /// Stores that found the disk or the quota full. Each one evicts a tenth of the cache, but never the last entry.
  public var fullDisk = 0
  /// Files that the store could not remove.
  public var failedRemovals = 0

  /// Creates counters that are all zero.
  public init() {}
}

/// The results of ``DiskCache/verify(removingDamaged:)`` and ``DiskCache/repair()``.
public struct VerificationReport: Hashable, Sendable {
  /// The number of intact entries.
  public var good = 0
  /// The total size of the bodies of the intact entries, in bytes.
  public var bodyBytes: Int64 = 0
  /// The damage of each damaged file, by path.
  public var damaged: [String: String] = [:]
  /// The number of damaged files that were removed.
  public var removed = 0
  /// The number of entries of a later format version, which were not touched.
  public var newer = 0
  /// The error of each file that could not be read, by path.
  public var unreadable: [String: String] = [:]

  /// The number of temporary files that a repair removed because the process that wrote them has ended.
  public var orphans = 0
  /// Whether a repair reset the folder's change counters. A process that ends during a change leaves two counters that differ.
  /// Until they are reset, every lookup that misses reads the file system.
  public var renewedCounters = false

  /// Creates an empty report.
  public init() {}

  /// Whether every damaged file was removed and every file could be read.
  public var isClean: Bool { damaged.count == removed && unreadable.isEmpty }
}

/// The operations of a disk cache, run on the caller's thread without the executor.
///
/// It exists for measurements. The executor's order of calls for one resource is the caller's responsibility.
package struct DiskWork: Sendable {
  private let engine: DiskEngine

  /// Creates the operations of `cache`.
  package init(_ cache: DiskCache) { engine = cache.engine }

  /// Opens an entry and reads its whole body.
  ///
  /// - Returns: The number of bytes in the body, or `nil` for a miss.
  package func read(_ key: CacheKey) throws(CacheError) -> Int? {
    let name = name(key)
    guard !engine.surelyLacks(name), let (entry, file) = try engine.opened(key, name, nil) else { return nil }
    if let data = entry.body.data { return data.count }
    var count: Int64 = 0
    while count < file.bodyLength { count += Int64(try engine.read(file, name, from: count, upTo: file.bodyLength).count) }
    return Int(count)
  }

  /// Stores a body that is in memory.
  package func store(_ body: Data, for key: CacheKey, metadata: StoredMetadata) throws(CacheError) {
    try DiskEntryWriter(key, metadata, engine).writeAndCommit(body)
  }

  /// Appends metadata. Returns `false` if there is no such entry.
  package func updateMetadata(_ key: CacheKey, _ metadata: StoredMetadata) throws(CacheError) -> Bool {
    try engine.updateMetadata(key, name(key), ifRevision: metadata.revision) { _ in metadata }
  }

  /// Removes an entry.
  package func remove(_ key: CacheKey) throws(CacheError) { try engine.remove(key, name(key), ifRevision: nil) }

  /// Lists the files.
  ///
  /// - Returns: The number of entries.
  package func list() throws(CacheError) -> Int {
    try engine.list()
    return engine.index.known.count
  }

  private func name(_ key: CacheKey) -> EntryName { EntryName(key, hashKey: engine.folder.key) }
}
