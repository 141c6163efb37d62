internal import CacheCore

/// Evictions, in the maintenance lane. They rely on the index, and list the files if other caches have changed something.
extension DiskEngine {
  /// The number of entries chosen at once. It is large enough that the files of one folder are removed together.
  private static let choiceLimit = 8192

  func enforceLimit() {
    index.sweep {
      guard let size = try? sum().size, folder.isWritable, let limit = configuration.sizeLimit, size > limit else { return }
      evict(to: configuration.sizeMark, .size, sparingRecentUpTo: limit)
    }
  }

  /// Waits for the current sweep if the folder may exceed its limit by a tenth, and otherwise returns immediately. Without the
  /// wait, stores that outpace the sweep would exceed the limit without bound.
  func waitForEviction() async {
    guard let limit = configuration.sizeLimit,
      index.known.size - limit > limit / 10 || index.wantsList(limit: limit, folder.foreignChangesWithoutWaiting)
    else { return }
    // The maintenance lane runs in order, so this waits for that sweep. A store that is being closed has none.
    try? await executor.run(.maintenance) { () throws(CacheError) in }
  }

  func trim(to size: Int64) throws(CacheError) -> Int {
    try requireWritable()
    _ = try sum()
    return evict(to: size, .trimmed)
  }

  /// Evicts a tenth of the cache, but never the last entry.
  func evictTenth() {
    guard let (size, count) = try? sum(), folder.isWritable, count > 1 else { return }
    evict(to: size - max(size / 10, 1), .fullDisk, sparingRecentUpTo: .max)
  }

  /// Removes entries in the policy's order until their total size is at most `target` bytes. It continues if a file cannot be
  /// removed.
  ///
  /// - Parameter limit: The size in bytes up to which entries that were just stored stay. With `nil`, no entry is spared.
  /// - Returns: The number of removed entries.
  @discardableResult
  private func evict(to target: Int64, _ reason: EvictionReason, sparingRecentUpTo limit: Int64? = nil) -> Int {
    let target = max(target, -1)
    guard (try? folder.prepareToWrite()) != nil else { return 0 }
    var removed = 0
    var left: [EntryIndex.Victim] = []
    while case let excess = index.known.size - target, excess > 0 {
      let victims = index.choose(
        excess, most: Self.choiceLimit, sparingRecentUnless: limit.map { max(0, index.known.size - $0) })
      if victims.isEmpty { break }
      // Every chosen entry is removed even if others remove entries meanwhile. An entry put back would become the newest.
      for (shard, victims) in Dictionary(grouping: victims, by: \.name.shardNumber) {
        removed += evict(victims, from: shard, &left)
      }
    }
    index.giveBack(left)
    if removed > 0 { noteChange() }
    count { $0.evictions[reason, default: 0] += removed }
    return removed
  }

  /// Removes entries of one shard, as one change in the counters.
  ///
  /// - Parameter left: Receives the entries that cannot be removed.
  private func evict(_ victims: [EntryIndex.Victim], from shard: UInt8, _ left: inout [EntryIndex.Victim]) -> Int {
    folder.change {
      let shard = folder.shardFolder(shard)
      // Another cache may also have stored an entry again that this one chose before.
      let checksUse = !index.knowsUses(folder.foreignUses) || !index.isCurrent(folder.foreignChanges)
      return victims.count { victim in
        let outcome = executor.wait(.entry(victim.name.lane)) { evict(victim, from: shard, checksUse) }
        if case .failed? = outcome {
          count { $0.failedRemovals += 1 }
          left.append(victim)
        }
        if case .removed? = outcome { return true }
        return false
      }
    }
  }

  /// Removes an entry in its lane, or returns `nil` if it was used, replaced or removed after it was chosen.
  private func evict(
    _ victim: EntryIndex.Victim, from shard: Result<OpenFolder, SystemError>, _ checksUse: Bool
  ) -> StoreFolder.BatchRemoval? {
    guard index.isStillChosen(victim) else { return nil }
    let outcome = folder.remove(victim.name, in: shard, unlessUsedSince: checksUse ? victim.last : nil)
    index.evicted(victim, outcome)
    return outcome
  }
}
