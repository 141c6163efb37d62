internal import CacheCore

/// The memory of a shard's slots. Keys and entries are in one cache line, apart from values that a hit seldom needs.
///
/// It is not an array: reading in place through a pointer copies nothing and touches no reference count. Two threads that hit the
/// same entry would otherwise contend for that count. Only one shard uses it, inside its lock.
final class SlotStorage {
  struct Resident {
    var key: CacheKey
    /// The entry, or `nil` if the slot is free.
    var entry: MemoryEntry?
  }

  struct SlotLimits {
    var deadline: Timestamp
    var cost: Int

    var isTimed: Bool { deadline.nanoseconds != .max }
  }

  let residents: UnsafeMutablePointer<Resident>
  let limits: UnsafeMutablePointer<SlotLimits>
  /// Whether a slot has a deadline at all. The byte is separate, so that most hits do not load the limits.
  let isTimed: UnsafeMutablePointer<Bool>
  private let capacity: Int
  /// The number of slots that were ever in use. Exactly these are initialized, which `deinit` relies on.
  private(set) var count = 0

  init(capacity: Int = 8) {
    residents = UnsafeMutableRawPointer.allocate(byteCount: capacity * MemoryLayout<Resident>.stride, alignment: 64)
      .bindMemory(to: Resident.self, capacity: capacity)
    limits = .allocate(capacity: capacity)
    isTimed = .allocate(capacity: capacity)
    self.capacity = capacity
  }

  deinit {
    residents.deinitialize(count: count)
    UnsafeMutableRawPointer(residents).deallocate()
    limits.deallocate()
    isTimed.deallocate()
  }

  var isFull: Bool { count == capacity }

  func write(_ new: SlotLimits, to slot: Int) {
    limits[slot] = new
    isTimed[slot] = new.isTimed
  }

  func append(_ resident: Resident, _ limits: SlotLimits) {
    precondition(!isFull)
    (residents + count).initialize(to: resident)
    (self.limits + count).initialize(to: limits)
    (isTimed + count).initialize(to: limits.isTimed)
    count += 1
  }

  /// Returns a storage of twice the capacity, to which all slots are moved.
  func grown() -> SlotStorage {
    let larger = SlotStorage(capacity: capacity * 2)
    larger.residents.moveInitialize(from: residents, count: count)
    larger.limits.moveInitialize(from: limits, count: count)
    larger.isTimed.moveInitialize(from: isTimed, count: count)
    (larger.count, count) = (count, 0)
    return larger
  }
}
