internal import CacheCore

/// The eviction order of the entries in the index, according to a policy. Each entry has a slot.
struct EvictionOrder: Sendable {
  private let empty: any EvictionPolicy
  private var policy: any EvictionPolicy
  private var names: [EntryName?] = []
  private var free: [Int32] = []

  /// - Parameter limit: The maximum total size in bytes, or `nil` for no limit.
  init(_ policy: any EvictionPolicy, limit: Int64?) {
    var policy = policy
    policy.bound(cost: limit.map { Int(clamping: $0) } ?? .max, count: .max)
    self.empty = policy
    self.policy = policy
  }

  /// The same policy without entries.
  var emptied: EvictionOrder { EvictionOrder(empty: empty) }

  private init(empty: any EvictionPolicy) {
    self.empty = empty
    policy = empty
  }

  /// Returns the cost in bytes, capped so that the sum over all slots cannot overflow. A sparse file can have any size.
  private static func cost(of use: EntryIndex.Use) -> Int { Int(clamping: min(use.size, Int64(UInt32.max))) }

  /// Adds a new entry with its earlier uses.
  mutating func insert(_ name: EntryName, _ use: inout EntryIndex.Use) {
    use.slot = takeSlot(name)
    policy.insert(Int(use.slot), fingerprint: name.fingerprint, cost: Self.cost(of: use))
    for _ in 0..<use.uses { policy.access(Int(use.slot)) }
  }

  /// Puts back an entry that was chosen and not evicted.
  mutating func spare(_ name: EntryName, _ use: inout EntryIndex.Use) {
    use.slot = takeSlot(name)
    policy.spare(Int(use.slot), fingerprint: name.fingerprint, cost: Self.cost(of: use))
  }

  private mutating func takeSlot(_ name: EntryName) -> Int32 {
    let slot: Int32
    if let last = free.popLast() {
      slot = last
      names[Int(slot)] = name
    } else {
      slot = Int32(names.count)
      names.append(name)
    }
    return slot
  }

  mutating func access(_ use: EntryIndex.Use) {
    if use.slot >= 0 { policy.access(Int(use.slot)) }
  }

  /// Updates an entry whose size has changed or whose file was replaced.
  mutating func replace(_ name: EntryName, _ use: EntryIndex.Use) {
    if use.slot >= 0 { policy.replace(Int(use.slot), fingerprint: name.fingerprint, cost: Self.cost(of: use)) }
  }

  mutating func remove(_ use: EntryIndex.Use) {
    guard use.slot >= 0 else { return }
    policy.remove(Int(use.slot))
    release(use.slot)
  }

  /// Removes and returns the entry to evict next.
  mutating func evict() -> EntryName? {
    // The store only shrinks here. With more space to make, S3-FIFO would evict all new entries.
    // The policy may be the user's. If it names an unused slot, there is nothing to evict.
    guard let slot = policy.evict(toFit: 0), names.indices.contains(slot), let name = names[slot] else { return nil }
    release(Int32(slot))
    return name
  }

  private mutating func release(_ slot: Int32) {
    names[Int(slot)] = nil
    free.append(slot)
  }
}

extension EntryName {
  /// The identity for policies that remember evicted entries.
  fileprivate var fingerprint: Int {
    Int(truncatingIfNeeded: resource.low ^ (member.map { $0.digest.low &+ ($0.isTransform ? 1 : 0) } ?? 0))
  }
}

/// The choice of entries to evict.
extension EntryIndex {
  /// An entry chosen for eviction.
  struct Victim: Sendable {
    let name: EntryName
    /// The space in bytes that the eviction frees, with the resource's folder if it has no other entry.
    let size: Int64
    /// The time of the last known use.
    let last: Timestamp
  }

  /// The number of entries chosen while the index is locked.
  private static let choiceBatch = 256

  /// Runs a sweep, which covers all entries stored before its start.
  func sweep(_ work: () -> Void) {
    let last = state.withLock { state in
      (state.needsSweep, state.isSweeping) = (false, true)
      return state.lastRecent
    }
    work()
    state.withLock { $0.endSweep(of: last) }
  }

  /// Chooses entries to evict in the policy's order, until they have `bytes` bytes in total or `most` are chosen. They stay in
  /// the index but leave the order until they are used, replaced or given back.
  ///
  /// The policy may be the user's, so the index and not the policy spares entries.
  ///
  /// - Parameter necessary: The number of bytes for which entries that were just stored are evicted too, the oldest first, but
  ///   never the last one. With `nil`, no entry is spared.
  func choose(_ bytes: Int64, most: Int, sparingRecentUnless necessary: Int64? = nil) -> [Victim] {
    var victims: [Victim] = []
    var spared: [Victim] = []
    var sum: Int64 = 0
    while sum < bytes, victims.count < most {
      let end = min(most, victims.count + Self.choiceBatch)
      let isExhausted = state.withLock { state in
        while sum < bytes, victims.count < end {
          guard let victim = state.chooseNext() else { return true }
          if necessary != nil, state.recent[victim.name] != nil {
            spared.append(victim)
          } else {
            victims.append(victim)
            sum += victim.size
          }
        }
        return false
      }
      if isExhausted { break }
    }
    guard let necessary, !spared.isEmpty else { return victims }
    state.withLock { state in
      // An entry that was used or stored again since is in the order already.
      let chosen = spared.filter { state.isChosen($0.name) }.map { (number: state.recent[$0.name] ?? 0, victim: $0) }
      for (number, victim) in chosen.sorted(by: { $0.number < $1.number }) {
        if sum < necessary, victims.count < most, number != state.lastRecent {
          victims.append(victim)
          sum += victim.size
        } else {
          state.spare(victim.name)
        }
      }
    }
    return victims
  }

  /// Whether all uses by other caches are known.
  func knowsUses(_ uses: FolderUses?) -> Bool { state.withLock { $0.listedUses != nil && $0.listedUses == uses } }

  /// Whether this cache has not used, replaced or removed the entry since. Call it in the entry's lane.
  func isStillChosen(_ victim: Victim) -> Bool { state.withLock { $0.isChosen(victim.name) } }

  /// Records the outcome of an eviction, in the entry's lane.
  func evicted(_ victim: Victim, _ outcome: StoreFolder.BatchRemoval) {
    state.withLock { state in
      switch outcome {
      case .removed, .absent: state.set(victim.name, nil)
      case .kept(let status): state.settle(victim.name, Use(status))
      case .failed: break
      }
    }
  }

  /// Puts entries that were not removed back into the order.
  func giveBack(_ victims: [Victim]) {
    state.withLock { state in
      for victim in victims where state.isChosen(victim.name) { state.takeIn(victim.name) }
    }
  }
}
