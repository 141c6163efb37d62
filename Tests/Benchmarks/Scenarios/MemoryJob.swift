import CAllocationCount
import CacheCore
import Dispatch
import MemoryStore

/// One kind of work on a memory store or on the dictionary beside it, by one or more threads.
struct MemoryJob: Job {
  static let name = "memory"

  let work: MemoryWork
  /// Whether it is the package's store; else the dictionary.
  let isOwn: Bool
  let threads: Int

  /// How often a batch goes through the order of keys.
  private var rounds: Int {
    switch work {
    case .hitWithReadyKey, .hitFromString, .miss, .setAnew: 500
    case .set: 3
    case .setEvicting, .zipf: 3
    }
  }

  func run() async throws -> Measurement {
    let bed = MemoryBed(work)
    let orders = (0..<threads).map { work.order(seed: UInt64($0)) }
    var measurement = Measurement()
    let cache = bed.cache()
    let dictionary = bed.dictionary()
    if work != .set { fill(bed, cache, dictionary) }
    // The first batch is the warm-up.
    for batch in 0...10 {
      var found = 0
      let operations = rounds * (orders.first?.count ?? 0) * threads
      let watch = Stopwatch()
      if threads == 1 {
        found = isOwn ? own(bed, orders[0], cache) : peer(bed, orders[0], dictionary)
      } else {
        DispatchQueue.concurrentPerform(iterations: threads) { number in
          _ = isOwn ? own(bed, orders[number], cache) : peer(bed, orders[number], dictionary)
        }
      }
      guard batch > 0 else { continue }
      // One thread by its processor time: what else the machine has to do is no cost of the store.
      let time = threads == 1 ? watch.processor : watch.wall
      measurement.add(time / .nanoseconds(1) / Double(operations), to: .nanosecondsEach)
      guard threads == 1 else { continue }
      switch work {
      case .hitWithReadyKey, .hitFromString, .setAnew, .set, .setEvicting:
        measurement.check("hits and stores", found, is: operations)
      case .miss: measurement.check("hits", found, is: 0)
      case .zipf: measurement.add(Double(found) / Double(operations), to: .hitRatio)
      }
    }
    if isOwn, work == .hitWithReadyKey { countAllocations(bed, cache, &measurement) }
    return measurement
  }

  private func fill(_ bed: MemoryBed, _ cache: MemoryCache, _ dictionary: FIFODictionary) {
    for number in 0..<min(MemoryBed.capacity, bed.entries.count) {
      if isOwn {
        cache.insert(bed.entries[number], for: bed.keys[number])
      } else {
        dictionary.insert(bed.entries[number], for: bed.stored[number])
      }
    }
  }

  private func own(_ bed: MemoryBed, _ order: [Int32], _ cache: MemoryCache) -> Int {
    var found = 0
    for _ in 0..<rounds {
      switch work {
      case .hitWithReadyKey: for number in order where cache.entry(for: bed.keys[Int(number)]) != nil { found += 1 }
      case .hitFromString:
        for number in order where cache.entry(for: CacheKey(resource: bed.asked[Int(number)])) != nil { found += 1 }
      case .miss:
        for number in order where cache.entry(for: CacheKey(resource: bed.absent[Int(number)])) != nil { found += 1 }
      case .set:
        let cache = bed.cache()
        for number in order where cache.insert(bed.entries[Int(number)], for: CacheKey(resource: bed.asked[Int(number)])) {
          found += 1
        }
      case .setAnew, .setEvicting:
        for number in order where cache.insert(bed.entries[Int(number)], for: CacheKey(resource: bed.asked[Int(number)])) {
          found += 1
        }
      case .zipf:
        for (place, number) in order.enumerated() {
          let key = CacheKey(resource: bed.asked[Int(number)])
          if place % 20 == 0 {
            cache.insert(bed.entries[Int(number)], for: key)
          } else if cache.entry(for: key) != nil {
            found += 1
          }
        }
      }
    }
    return found
  }

  private func peer(_ bed: MemoryBed, _ order: [Int32], _ dictionary: FIFODictionary) -> Int {
    var found = 0
    for _ in 0..<rounds {
      switch work {
      case .hitWithReadyKey: for number in order where dictionary.entry(for: bed.stored[Int(number)]) != nil { found += 1 }
      case .hitFromString: for number in order where dictionary.entry(for: bed.asked[Int(number)]) != nil { found += 1 }
      case .miss: for number in order where dictionary.entry(for: bed.absent[Int(number)]) != nil { found += 1 }
      case .set:
        let dictionary = bed.dictionary()
        for number in order { dictionary.insert(bed.entries[Int(number)], for: bed.asked[Int(number)]) }
        found += order.count
      case .setAnew, .setEvicting:
        for number in order { dictionary.insert(bed.entries[Int(number)], for: bed.asked[Int(number)]) }
        found += order.count
      case .zipf:
        for (place, number) in order.enumerated() {
          if place % 20 == 0 {
            dictionary.insert(bed.entries[Int(number)], for: bed.asked[Int(number)])
          } else if dictionary.entry(for: bed.asked[Int(number)]) != nil {
            found += 1
          }
        }
      }
    }
    return found
  }

  /// A hit allocates nothing, nor does a key that is made of a string.
  private func countAllocations(_ bed: MemoryBed, _ cache: MemoryCache, _ measurement: inout Measurement) {
    let beforeAny = etagere_allocation_count()
    let alive = bed.keys.map(\.hashValue)
    // Where malloc can't be counted, nothing is claimed.
    guard etagere_allocation_count() > beforeAny, !alive.isEmpty else { return }
    let before = etagere_allocation_count()
    var hits = 0
    for number in bed.keys.indices {
      if cache.entry(for: bed.keys[number]) != nil { hits += 1 }
      if cache.entry(for: CacheKey(resource: bed.asked[number])) != nil { hits += 1 }
    }
    let allocations = Int(etagere_allocation_count() - before)
    measurement.check("hits", hits, is: bed.keys.count * 2)
    measurement.check("allocations in \(hits) hits", allocations, is: 0)
    measurement.add(allocations, to: .allocations)
  }
}
