internal import CacheCore

/// The memory of a shard's slots: who lives there, in one line of the processor's cache, and what a hit seldom needs.
///
/// Not an array: what is read in place through a pointer is not copied, and so no reference count is touched, for which two
/// threads that hit the same entry would fight. One shard uses it, inside its lock.
final class Slab {
  struct Resident {
    var key: CacheKey
    /// Nil: the slot is free.
    var entry: MemoryEntry?
  }

  struct Terms {
    var deadline: Timestamp
    var cost: Int

    var isTimed: Bool { deadline.nanoseconds != .max }
  }

  let residents: UnsafeMutablePointer<Resident>
  let terms: UnsafeMutablePointer<Terms>
  /// Whether the deadline is one at all: a byte, so that most hits need not fetch the terms.
  let isTimed: UnsafeMutablePointer<Bool>
  private let capacity: Int
  /// How many slots were ever in use. Those are initialised: what `deinit` relies on.
  private(set) var count = 0

  init(capacity: Int = 8) {
    residents = UnsafeMutableRawPointer.allocate(byteCount: capacity * MemoryLayout<Resident>.stride, alignment: 64)
      .bindMemory(to: Resident.self, capacity: capacity)
    terms = .allocate(capacity: capacity)
    isTimed = .allocate(capacity: capacity)
    self.capacity = capacity
  }

  deinit {
    residents.deinitialize(count: count)
    UnsafeMutableRawPointer(residents).deallocate()
    terms.deallocate()
    isTimed.deallocate()
  }

  var isFull: Bool { count == capacity }

  func write(_ new: Terms, to slot: Int) {
    terms[slot] = new
    isTimed[slot] = new.isTimed
  }

  func append(_ resident: Resident, _ terms: Terms) {
    precondition(!isFull)
    (residents + count).initialize(to: resident)
    (self.terms + count).initialize(to: terms)
    (isTimed + count).initialize(to: terms.isTimed)
    count += 1
  }

  /// One of twice the size, to which all slots have moved.
  func grown() -> Slab {
    let larger = Slab(capacity: capacity * 2)
    larger.residents.moveInitialize(from: residents, count: count)
    larger.terms.moveInitialize(from: terms, count: count)
    larger.isTimed.moveInitialize(from: isTimed, count: count)
    (larger.count, count) = (count, 0)
    return larger
  }
}
