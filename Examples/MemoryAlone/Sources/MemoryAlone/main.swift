// MemoryStore without the other modules: a memory cache with limits.
// `swift run --package-path Examples/MemoryAlone MemoryAlone`
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

print("Two avatars of 400 bytes in a cache of 1,000 bytes")
cache.insert(avatar(400), for: ada)
cache.insert(avatar(400), for: bob)
expect(cache.totalCost == 800 && cache.count == 2, "800 bytes, 2 entries")

print("Hits are synchronous, and two of them protect an entry from the next eviction")
_ = cache.entry(for: ada)
let held = cache.entry(for: ada)?.value(as: Avatar.self)
expect(held?.pixels.count == 400, "Ada's 400 pixels")

print("A third avatar does not fit: an entry is evicted before it is inserted")
cache.insert(avatar(500), for: eve)
expect(cache.entry(for: bob) == nil, "Bob's entry was evicted, because it was not used")
expect(cache.totalCost == 900, "900 bytes, which is within the limit")

print("An avatar above the limit of a single entry")
expect(!cache.insert(avatar(601), for: bob), "refused, and no entry was evicted")

print("Trimming the cache to 0 bytes")
cache.trim(to: 0)
expect(cache.count == 0 && held?.pixels.count == 400, "the cache is empty, and a value in use stays valid")

let counters = cache.counters
let evictions = counters.evictions.map { "\($0.value) \($0.key.rawValue)" }.sorted().joined(separator: ", ")
print(
  "hits \(counters.hits), misses \(counters.misses), insertions \(counters.insertions), refusals \(counters.refusedInsertions)")
print("evictions by reason: \(evictions)")
expect(counters.hits == 2 && counters.misses == 1 && counters.refusedInsertions == 1, "2 hits, 1 miss, 1 refusal")
expect(counters.evictions == [.size: 1, .trimmed: 2], "1 entry was evicted for size, 2 were trimmed")
