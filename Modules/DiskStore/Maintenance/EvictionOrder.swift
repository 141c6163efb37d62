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
