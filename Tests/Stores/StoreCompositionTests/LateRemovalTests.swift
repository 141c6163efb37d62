import CacheCore
import CacheTesting
import StoreComposition
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Layered store: a layer that could not be emptied")
struct LateRemovalTests {
  private let old = CacheKey(resource: "https://example.com/old")
  private let keys = (0..<2).map { CacheKey(resource: "https://example.com/\($0)") }

  @Test("the layer is emptied before the next write, even if it was read-only only temporarily")
  func momentary() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    let store = try LayeredStore([upper, lower])
    try await store.store(Data("old".utf8), for: old, metadata: metadata())

    upper.failure = CacheError(.readOnly, reason: "the volume is read-only")
    try await store.removeAll()
    try await store.store(Data("new".utf8), for: keys[0], metadata: metadata())
    upper.failure = nil
    #expect(try await store.entry(for: old) == nil)
    try await store.store(Data("new".utf8), for: keys[1], metadata: metadata())

    #expect(upper.keys == [keys[1]])
    let lookups = lower.opened
    #expect(try await store.text(keys[1]) == "new")
    #expect(lower.opened == lookups)
  }

  @Test("the layer is emptied once, however many concurrent writes follow")
  func once() async throws {
    let (upper, lower) = (HeldStore(), VolatileStore())
    let store = try LayeredStore([upper, lower])
    upper.gate.open()
    try await store.store(Data("old".utf8), for: old, metadata: metadata())
    upper.inner.failure = CacheError(.fileSystem, reason: "the disk is gone")
    #expect(await failure { try await store.removeAll() }?.code == .fileSystem)
    upper.inner.failure = nil

    upper.removals.close()
    let writing = keys.map { key in Task { try await store.store(Data("new".utf8), for: key, metadata: metadata()) } }
    await upper.removals.arrived(2)
    for _ in 0..<100 { await Task.yield() }
    #expect(upper.removals.arrivals == 2)
    upper.removals.open()
    for task in writing { _ = try await task.value }
    #expect(Set(upper.inner.keys) == Set(keys))
    for key in keys { #expect(try await store.text(key) == "new") }
  }
}
