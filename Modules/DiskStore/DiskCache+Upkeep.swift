public import CacheCore

extension DiskCache {
  /// Bytes that all entries' files take, those of other processes among them.
  ///
  /// Answers from memory; the files are listed first, which takes the longer the more there are, when that was not done yet, or
  /// when another process changed something.
  public var totalSize: Int64 {
    get async throws(CacheError) { try await upkeep { engine throws(CacheError) in try engine.sum().size } }
  }

  /// How many entries there are; see ``totalSize``.
  public var entryCount: Int {
    get async throws(CacheError) { try await upkeep { engine throws(CacheError) in try engine.sum().count } }
  }

  public func usage() async throws(CacheError) -> StoreUsage? {
    let limit = configuration.sizeLimit
    return try await upkeep { engine throws(CacheError) in
      let sum = try engine.sum()
      return StoreUsage(entries: sum.count, bytes: sum.size, limit: limit)
    }
  }

  /// Reads every entry whole and checks every byte of it.
  ///
  /// - Parameter removingDamaged: whether damaged files are removed, as reading one would.
  public func verify(removingDamaged: Bool = false) async throws(CacheError) -> VerificationReport {
    try await upkeep { engine throws(CacheError) in try engine.verify(removingDamaged: removingDamaged) }
  }

  /// Repairs the folder: checks every byte and removes damaged files, removes temporary files of processes that have ended, makes
  /// counters anew that such a process left unequal, and counts the entries again.
  ///
  /// Other caches may use the folder meanwhile, in this process or another. Entries of a later format version are not touched.
  ///
  /// - Throws: `CacheError.Code.readOnly` if the cache cannot change the folder, and the errors of listing it.
  @discardableResult
  public func repair() async throws(CacheError) -> VerificationReport {
    try await upkeep { engine throws(CacheError) in try engine.repair() }
  }

  /// Removes entries, in the order of ``Configuration/eviction``, until they take no more than `size` bytes. A file that can't be
  /// removed is passed over.
  ///
  /// - Returns: how many were removed.
  @discardableResult
  public func trim(to size: Int64) async throws(CacheError) -> Int {
    try await upkeep { engine throws(CacheError) in try engine.trim(to: size) }
  }

  /// Removes the entries whose time to live is over. Reads a part of every file.
  ///
  /// - Returns: how many were removed.
  @discardableResult
  public func removeExpired() async throws(CacheError) -> Int {
    try await upkeep { engine throws(CacheError) in try engine.removeExpired() }
  }

  /// Refuses further calls, and further pulls of open bodies, with `CacheError.Code.closed`, and returns when all work under way
  /// is done.
  public func close() async {
    engine.index.close()
    engine.firstAnswers.end()
    await engine.executor.close()
    // Nothing changes any more, so what is written now is how the folder is left.
    engine.executor.start(.upkeep, whenClosed: true) { [engine] in engine.saveIndex() }
    await engine.executor.close()
  }

  func upkeep<Value: Sendable>(
    _ work: @escaping @Sendable (DiskEngine) throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    engine.firstAnswers.end()
    return try await engine.executor.run(.upkeep) { [engine] () throws(CacheError) in try work(engine) }
  }
}
