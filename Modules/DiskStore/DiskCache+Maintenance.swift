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
