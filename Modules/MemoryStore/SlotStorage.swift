internal import CacheCore

/// The memory of a shard's slots: who lives there, in one line of the processor's cache, and what a hit seldom needs.
///
/// Not an array: what is read in place through a pointer is not copied, and so no reference count is touched, for which two
/// threads that hit the same entry would fight. One shard uses it, inside its lock.
final class SlotStorage {
  struct Resident {
    var key: CacheKey
    /// Nil: the slot is free.
    var entry: MemoryEntry?
  }

  struct SlotLimits {
    var deadline: Timestamp
    var cost: Int

    var isTimed: Bool { deadline.nanoseconds != .max }
  }

  let residents: UnsafeMutablePointer<Resident>
  let limits: UnsafeMutablePointer<SlotLimits>
  /// Whether the deadline is one at all: a byte, so that most hits need not fetch the terms.
  let isTimed: UnsafeMutablePointer<Bool>
  private let capacity: Int
  /// How many slots were ever in use. Those are initialised: what `deinit` relies on.
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

  /// One of twice the size, to which all slots have moved.
  func grown() -> SlotStorage {
    let larger = SlotStorage(capacity: capacity * 2)
    larger.residents.moveInitialize(from: residents, count: count)
    larger.limits.moveInitialize(from: limits, count: count)
    larger.isTimed.moveInitialize(from: isTimed, count: count)
    (larger.count, count) = (count, 0)
    return larger
  }
}
