internal import CacheCore

/// Which entry leaves next, by a policy: gives each entry that the index knows a slot.
struct EvictionOrder: Sendable {
  private let empty: any EvictionPolicy
  private var policy: any EvictionPolicy
  private var names: [EntryName?] = []
  private var free: [Int32] = []

  /// - Parameter limit: bytes of all entries; nil: no limit.
  init(_ policy: any EvictionPolicy, limit: Int64?) {
    var policy = policy
    policy.bound(cost: limit.map { Int(clamping: $0) } ?? .max, count: .max)
    self.empty = policy
    self.policy = policy
  }

  /// The same policy, of no entries.
  var emptied: EvictionOrder { EvictionOrder(empty: empty) }

  private init(empty: any EvictionPolicy) {
    self.empty = empty
    policy = empty
  }

  /// Bytes, of which a file with a hole may have any number: so many that the sum of as many as there are slots is a number too.
  private static func cost(of use: EntryIndex.Use) -> Int { Int(clamping: min(use.size, Int64(UInt32.max))) }

  /// A newcomer, that was used before so often.
  mutating func insert(_ name: EntryName, _ use: inout EntryIndex.Use) {
    let slot: Int32
    if let last = free.popLast() {
      slot = last
      names[Int(slot)] = name
    } else {
      slot = Int32(names.count)
      names.append(name)
    }
    use.slot = slot
    policy.insert(Int(slot), fingerprint: name.fingerprint, cost: Self.cost(of: use))
    for _ in 0..<use.uses { policy.access(Int(slot)) }
  }

  mutating func access(_ use: EntryIndex.Use) {
    if use.slot >= 0 { policy.access(Int(use.slot)) }
  }

  /// The file has another size now, or is another file.
  mutating func replace(_ name: EntryName, _ use: EntryIndex.Use) {
    if use.slot >= 0 { policy.replace(Int(use.slot), fingerprint: name.fingerprint, cost: Self.cost(of: use)) }
  }

  mutating func remove(_ use: EntryIndex.Use) {
    guard use.slot >= 0 else { return }
    policy.remove(Int(use.slot))
    release(use.slot)
  }

  /// The entry that should leave next, which is forgotten here.
  mutating func evict() -> EntryName? {
    // The store just shrinks: with room for more in mind, S3-FIFO would let all newcomers go that are there.
    // A policy may be the user's own: one that names a slot that is nobody's has nobody to leave.
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
  /// For policies that remember what they evicted.
  fileprivate var fingerprint: Int {
    Int(truncatingIfNeeded: resource.low ^ (member.map { $0.digest.low &+ ($0.isTransform ? 1 : 0) } ?? 0))
  }
}
