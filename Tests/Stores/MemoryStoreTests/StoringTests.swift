import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("Storing in a memory cache")
struct StoringTests {
  @Test("a lookup returns the stored entry, and its value only as its own type")
  func storesAndGets() {
    // Given
    let cache = MemoryCache.limited()
    let stored = entry("image", cost: 7)

    // When
    let isTaken = cache.insert(stored, for: key("a"))

    // Then
    #expect(isTaken)
    #expect(cache.entry(for: key("a")) === stored)
    #expect(cache.entry(for: key("a"))?.value(as: String.self) == "image")
    #expect(cache.entry(for: key("a"))?.value(as: Int.self) == nil)
    #expect(cache.entry(for: key("b")) == nil)
  }

  @Test("a key may have any characters and any length")
  func oddKeys() {
    // Given
    let texts = [
      "", "\0", "a\0b", "..", "/", "\u{1F600}", "e\u{301}", String(decoding: [0xFF, 0xC3, 0x28] as [UInt8], as: UTF8.self),
      String(repeating: "k", count: 1_000_000),
    ]
    let keys = texts.flatMap {
      [CacheKey(resource: $0), CacheKey(resource: "r", variant: $0 + "v"), CacheKey(resource: "r", transform: $0 + "f")]
    }
    let cache = MemoryCache(limits: .init(cost: 1_000, count: 100))

    // When
    for (number, key) in keys.enumerated() { cache.insert(MemoryEntry(number, cost: 1, revision: .random()), for: key) }

    // Then
    for (number, key) in keys.enumerated() { #expect(cache.entry(for: key)?.value(as: Int.self) == number) }
    #expect(cache.count == keys.count)
  }

  @Test("the variant and the transform are part of the key")
  func keysAreWhole() {
    let cache = MemoryCache.limited()
    let keys = [
      CacheKey(resource: "r"), CacheKey(resource: "r", variant: "v"), CacheKey(resource: "r", transform: "f"),
      CacheKey(resource: "r", variant: "v", transform: "f"),
    ]
    for (index, key) in keys.enumerated() { cache.insert(entry(index), for: key) }
    for (index, key) in keys.enumerated() { #expect(cache.entry(for: key)?.value(as: Int.self) == index) }
    #expect(cache.count == 4)
  }

  @Test("a replacement has the cost of the new entry", arguments: [(10, 3), (3, 10), (5, 5), (5, 0)])
  func overwriteWeighsAnew(_ before: Int, _ after: Int) {
    // Given
    let cache = MemoryCache.limited()
    cache.insert(entry("other", cost: 100), for: key("other"))
    cache.insert(entry("old", cost: before), for: key("a"))

    // When
    cache.insert(entry("new", cost: after), for: key("a"))

    // Then
    #expect(cache.text("a") == "new")
    #expect(cache.totalCost == 100 + after)
    #expect(cache.count == 2)
    #expect(cache.counters.evictions == [.replaced: 1])
  }

  @Test("a replacement in a full cache evicts no other entry")
  func overwriteFreesItsOwnSpace() {
    let cache = MemoryCache.limited(cost: 10, count: 2)
    cache.insert(entry("a", cost: 5), for: key("a"))
    cache.insert(entry("b", cost: 5), for: key("b"))

    cache.insert(entry("b again", cost: 5), for: key("b"))

    #expect(cache.text("a") == "a")
    #expect(cache.text("b") == "b again")
  }

  @Test("a removed entry leaves once")
  func removes() {
    let cache = MemoryCache.limited()
    cache.insert(entry(cost: 4), for: key("a"))
    cache.insert(entry(cost: 6), for: key("b"))

    cache.remove(key("a"))
    cache.remove(key("a"))
    cache.remove(key("never there"))

    #expect(cache.entry(for: key("a")) == nil)
    #expect(cache.totalCost == 6)
    #expect(cache.count == 1)
    #expect(cache.counters.evictions == [.removed: 1])
  }

  @Test("a removal for another revision leaves the entry")
  func removesByRevision() {
    let cache = MemoryCache.limited()
    let revision = Revision.random()
    cache.insert(entry("kept", revision: revision), for: key("a"))

    cache.remove(key("a"), ifRevision: .random())
    #expect(cache.text("a") == "kept")

    cache.remove(key("a"), ifRevision: revision)
    #expect(cache.entry(for: key("a")) == nil)
  }

  @Test("after removeAll, the cache is empty and accepts new entries")
  func removesAll() {
    // Given
    let cache = MemoryCache.limited(cost: 10, count: 3)
    for name in ["a", "b", "c"] { cache.insert(entry(cost: 3), for: key(name)) }

    // When
    cache.removeAll()

    // Then
    #expect(cache.count == 0)
    #expect(cache.totalCost == 0)
    #expect(cache.counters.evictions == [.removed: 3])
    for name in ["d", "e", "f", "g"] { cache.insert(entry(name, cost: 3), for: key(name)) }
    #expect(["a", "d", "e", "f", "g"].map { cache.text($0) } == [nil, nil, "e", "f", "g"])
  }

  @Test("two caches never have the same identity")
  func identity() {
    let (one, other) = (MemoryCache.limited(), MemoryCache.limited())
    #expect(one.id != other.id)
    #expect(one.id == one.id)
  }
}
