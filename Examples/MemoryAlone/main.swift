// One module alone: a bounded store in memory. `swift run MemoryAlone`
import CacheCore
import Foundation
import MemoryStore

func expect(_ isTrue: Bool, _ what: String) {
  print(isTrue ? "  as expected: \(what)" : "  WRONG, expected: \(what)")
  if !isTrue { exit(1) }
}

struct Avatar: Equatable {
  var pixels: [UInt8]
}

func avatar(_ size: Int) -> MemoryEntry {
  MemoryEntry(Avatar(pixels: Array(repeating: 7, count: size)), cost: size, revision: .random())
}

let (ada, bob, eve) = (CacheKey(resource: "avatar/ada"), CacheKey(resource: "avatar/bob"), CacheKey(resource: "avatar/eve"))
let cache = MemoryCache(limits: .init(cost: 1_000, count: 100, entryCost: 600))

print("Two avatars of 400 bytes, in a store of 1,000")
cache.insert(avatar(400), for: ada)
cache.insert(avatar(400), for: bob)
expect(cache.totalCost == 800 && cache.count == 2, "800 bytes, 2 entries")

print("A hit is synchronous, and makes its entry the last to be evicted")
let held = cache.entry(for: ada)?.value(as: Avatar.self)
expect(held?.pixels.count == 400, "Ada's 400 pixels")

print("A third one: somebody has to leave, before it moves in")
cache.insert(avatar(500), for: eve)
expect(cache.entry(for: bob) == nil, "Bob left, he was not used for the longest time")
expect(cache.totalCost == 900, "900 bytes, never more than the limit")

print("One that is larger than any single entry may be")
expect(!cache.insert(avatar(601), for: bob), "refused, and nobody left for it")

print("Room for others: trimmed to nothing")
cache.trim(to: 0)
expect(cache.count == 0 && held?.pixels.count == 400, "the store is empty, and who holds a value keeps it")

let counters = cache.counters
let evictions = counters.evictions.map { "\($0.value) \($0.key.rawValue)" }.sorted().joined(separator: ", ")
print("hits \(counters.hits), misses \(counters.misses), insertions \(counters.insertions), refusals \(counters.refusals)")
print("left, by reason: \(evictions)")
expect(counters.hits == 1 && counters.misses == 1 && counters.refusals == 1, "1 hit, 1 miss, 1 refusal")
expect(counters.evictions == [.size: 1, .trimmed: 2], "1 left for room, 2 were trimmed")
