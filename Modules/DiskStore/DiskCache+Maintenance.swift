public import CacheCore

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
