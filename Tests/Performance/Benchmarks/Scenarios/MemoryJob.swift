import CAllocationCount
import CacheCore
import Dispatch
import MemoryStore

/// One kind of work on the memory store or on its peer, the dictionary, in one or more threads.
struct MemoryJob: Job {
  static let name = "memory"

  let work: MemoryWork
  /// Whether the work uses the package's store instead of the dictionary.
  let isOwn: Bool
  let threads: Int

  /// The number of passes over the keys in a batch.
  private var rounds: Int {
    switch work {
    case .hitWithReadyKey, .hitFromString, .miss, .setAnew: 500
    case .set: 3
    case .setEvicting, .zipf: 3
    }
  }

  func run() async throws -> Measurement {
    let fixture = MemoryFixture(work)
    let orders = (0..<threads).map { work.order(seed: UInt64($0)) }
    var measurement = Measurement()
    let cache = fixture.cache()
    let dictionary = fixture.dictionary()
    if work != .set { fill(fixture, cache, dictionary) }
    // The first batch is the warm-up.
    for batch in 0...10 {
      var found = 0
      let operations = rounds * (orders.first?.count ?? 0) * threads
      let watch = Stopwatch()
      if threads == 1 {
        found = isOwn ? own(fixture, orders[0], cache) : peer(fixture, orders[0], dictionary)
      } else {
        DispatchQueue.concurrentPerform(iterations: threads) { number in
          _ = isOwn ? own(fixture, orders[number], cache) : peer(fixture, orders[number], dictionary)
        }
      }
      guard batch > 0 else { continue }
      // Processor time for one thread, because other work of the machine adds to the elapsed time.
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
    if isOwn, work == .hitWithReadyKey { countAllocations(fixture, cache, &measurement) }
    return measurement
  }

  private func fill(_ fixture: MemoryFixture, _ cache: MemoryCache, _ dictionary: FIFODictionary) {
    for number in 0..<min(MemoryFixture.capacity, fixture.entries.count) {
      if isOwn {
        cache.insert(fixture.entries[number], for: fixture.keys[number])
      } else {
        dictionary.insert(fixture.entries[number], for: fixture.stored[number])
      }
    }
  }

  private func own(_ fixture: MemoryFixture, _ order: [Int32], _ cache: MemoryCache) -> Int {
    var found = 0
    for _ in 0..<rounds {
      switch work {
      case .hitWithReadyKey: for number in order where cache.entry(for: fixture.keys[Int(number)]) != nil { found += 1 }
      case .hitFromString:
        for number in order where cache.entry(for: CacheKey(resource: fixture.asked[Int(number)])) != nil { found += 1 }
      case .miss:
        for number in order where cache.entry(for: CacheKey(resource: fixture.absent[Int(number)])) != nil { found += 1 }
      case .set:
        let cache = fixture.cache()
        for number in order where cache.insert(fixture.entries[Int(number)], for: CacheKey(resource: fixture.asked[Int(number)]))
        {
          found += 1
        }
      case .setAnew, .setEvicting:
        for number in order where cache.insert(fixture.entries[Int(number)], for: CacheKey(resource: fixture.asked[Int(number)]))
        {
          found += 1
        }
      case .zipf:
        for (place, number) in order.enumerated() {
          let key = CacheKey(resource: fixture.asked[Int(number)])
          if place % 20 == 0 {
            cache.insert(fixture.entries[Int(number)], for: key)
          } else if cache.entry(for: key) != nil {
            found += 1
          }
        }
      }
    }
    return found
  }

  private func peer(_ fixture: MemoryFixture, _ order: [Int32], _ dictionary: FIFODictionary) -> Int {
    var found = 0
    for _ in 0..<rounds {
      switch work {
      case .hitWithReadyKey: for number in order where dictionary.entry(for: fixture.stored[Int(number)]) != nil { found += 1 }
      case .hitFromString: for number in order where dictionary.entry(for: fixture.asked[Int(number)]) != nil { found += 1 }
      case .miss: for number in order where dictionary.entry(for: fixture.absent[Int(number)]) != nil { found += 1 }
      case .set:
        let dictionary = fixture.dictionary()
        for number in order { dictionary.insert(fixture.entries[Int(number)], for: fixture.asked[Int(number)]) }
        found += order.count
      case .setAnew, .setEvicting:
        for number in order { dictionary.insert(fixture.entries[Int(number)], for: fixture.asked[Int(number)]) }
        found += order.count
      case .zipf:
        for (place, number) in order.enumerated() {
          if place % 20 == 0 {
            dictionary.insert(fixture.entries[Int(number)], for: fixture.asked[Int(number)])
          } else if dictionary.entry(for: fixture.asked[Int(number)]) != nil {
            found += 1
          }
        }
      }
    }
    return found
  }

  /// Checks that neither a hit nor the creation of a key from a string allocates memory.
  private func countAllocations(_ fixture: MemoryFixture, _ cache: MemoryCache, _ measurement: inout Measurement) {
    let beforeAny = etagere_allocation_count()
    let alive = fixture.keys.map(\.hashValue)
    // Without a count of allocations on this platform, the check is skipped.
    guard etagere_allocation_count() > beforeAny, !alive.isEmpty else { return }
    let before = etagere_allocation_count()
    var hits = 0
    for number in fixture.keys.indices {
      if cache.entry(for: fixture.keys[number]) != nil { hits += 1 }
      if cache.entry(for: CacheKey(resource: fixture.asked[number])) != nil { hits += 1 }
    }
    let allocations = Int(etagere_allocation_count() - before)
    measurement.check("hits", hits, is: fixture.keys.count * 2)
    measurement.check("allocations in \(hits) hits", allocations, is: 0)
    measurement.add(allocations, to: .allocations)
  }
}
