internal import CacheCore

/// Making room, in the upkeep's lane: by what the index knows, and where others have changed something, by a list of the files.
extension DiskEngine {
  /// How many entries are chosen at once: enough that the files of one folder are removed together.
  private static let choiceLimit = 8192

  func enforceLimit() {
    guard let size = try? sum().size, folder.isWritable, let limit = configuration.sizeLimit, size > limit else { return }
    evict(to: configuration.sizeMark, .size)
  }

  /// Returns at once, but where the folder may be a tenth above its limit: then when the sweep that is under way has ended. Else
  /// who stores faster than a sweep removes would leave the limit behind for as long as it stores.
  func waitForRoom() async {
    guard let limit = configuration.sizeLimit,
      index.known.size - limit > limit / 10 || index.wantsList(limit: limit, folder.foreignChanges)
    else { return }
    // Behind that sweep; a store that is being closed has none to wait for.
    try? await executor.run(.upkeep) { () throws(CacheError) in }
  }

  func trim(to size: Int64) throws(CacheError) -> Int {
    try requireWritable()
    _ = try sum()
    return evict(to: size, .trimmed)
  }

  /// Lets a tenth of what is stored go, never all of it.
  func evictTenth() {
    guard let (size, count) = try? sum(), folder.isWritable, count > 1 else { return }
    evict(to: size - max(size / 10, 1), .fullDisk)
  }

  /// Removes entries in the policy's order until they take no more than `target` bytes. Goes on when a file can't be removed.
  ///
  /// - Returns: how many entries were removed.
  @discardableResult
  private func evict(to target: Int64, _ reason: EvictionReason) -> Int {
    let target = max(target, -1)
    guard (try? folder.prepareToWrite()) != nil else { return 0 }
    var removed = 0
    var left: [EntryIndex.Victim] = []
    while case let excess = index.known.size - target, excess > 0 {
      let victims = index.choose(excess, most: Self.choiceLimit)
      if victims.isEmpty { break }
      // All of them, also when others remove entries meanwhile: who was next to leave would come back as the newest.
      for (shard, victims) in Dictionary(grouping: victims, by: \.name.shardNumber) {
        removed += evict(victims, from: shard, &left)
      }
    }
    index.giveBack(left)
    if removed > 0 { noteChange() }
    count { $0.evictions[reason, default: 0] += removed }
    return removed
  }

  /// One change of the folder, as the counters count.
  ///
  /// - Parameter left: takes those that can't be removed.
  private func evict(_ victims: [EntryIndex.Victim], from shard: UInt8, _ left: inout [EntryIndex.Victim]) -> Int {
    folder.change {
      let shard = folder.shardFolder(shard)
      let looks = !index.knowsUses(folder.foreignUses)
      return victims.count { victim in
        let outcome = executor.wait(.entry(victim.name.lane)) { evict(victim, from: shard, looks) }
        if case .failed? = outcome {
          count { $0.failedRemovals += 1 }
          left.append(victim)
        }
        if case .removed? = outcome { return true }
        return false
      }
    }
  }

  /// In its lane; nil: it was used, replaced or removed since it was chosen.
  private func evict(
    _ victim: EntryIndex.Victim, from shard: Result<OpenFolder, SystemError>, _ looks: Bool
  ) -> StoreFolder.EvictionOutcome? {
    guard index.isStillChosen(victim) else { return nil }
    let outcome =
      switch shard {
      case .success(let shard): folder.remove(victim, in: shard, looks: looks)
      case .failure(let error): StoreFolder.EvictionOutcome(error)
      }
    index.evicted(victim, outcome)
    return outcome
  }
}
