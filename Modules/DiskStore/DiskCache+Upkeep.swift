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

  /// All entries, without their bodies, the least recently used first. Reads a part of every file. What is damaged or expired is
  /// left out.
  public func entries() async throws(CacheError) -> [EntrySummary] {
    try await upkeep { engine throws(CacheError) in try engine.summaries() }
  }

  /// Reads every entry whole and checks every byte of it.
  ///
  /// - Parameter removingDamaged: whether damaged files are removed, as reading one would.
  public func verify(removingDamaged: Bool = false) async throws(CacheError) -> VerificationReport {
    try await upkeep { engine throws(CacheError) in try engine.verify(removingDamaged: removingDamaged) }
  }

  /// Puts right what can be: checks every byte and removes what is damaged, removes what ended processes left half written, makes
  /// counters anew that one of them left in the middle of a change, and counts the entries again.
  ///
  /// Others may use the folder meanwhile, in this process or another: what they are writing stays, and what they store is seen.
  /// Entries of a later version are left alone.
  ///
  /// - Throws: `CacheError.Code.readOnly` when nothing can be changed; what listing the folder throws.
  @discardableResult
  public func repair() async throws(CacheError) -> RepairReport {
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
