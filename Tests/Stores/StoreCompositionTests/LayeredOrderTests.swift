import CacheCore
import CacheTesting
import StoreComposition
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Layered store: concurrent changes of one resource")
struct LayeredOrderTests {
  private let key = CacheKey(resource: "https://example.com/a")
  private let upper = HeldStore()
  private let lower = VolatileStore()

  /// Starts a commit that has reached the lower layer and is blocked in the upper one.
  private func held(_ text: String, _ store: LayeredStore) async throws -> Task<Void, any Error> {
    upper.gate.open()
    let writer = try await store.makeWriter(for: key, metadata: metadata())
    try await writer.write(Data(text.utf8))
    upper.gate.close()
    let arrivals = upper.gate.arrivals
    let commit = Task { _ = try await writer.commit(trailers: nil) }
    await upper.gate.arrived(arrivals + 1)
    return commit
  }

  private func others() async { for _ in 0..<100 { await Task.yield() } }

  @Test("a commit waits for the one before it, so the layers end with the same response")
  func commits() async throws {
    let store = try LayeredStore([upper, lower])
    upper.gate.open()
    let later = try await store.makeWriter(for: key, metadata: metadata())
    try await later.write(Data("second".utf8))
    let first = try await held("first", store)
    let second = Task { _ = try await later.commit(trailers: nil) }
    await others()
    #expect(try await lower.text(key) == "first")

    upper.gate.open()
    try await first.value
    try await second.value
    for layer in [upper as any CacheStore, lower] { #expect(try await layer.text(key) == "second") }
  }

  @Test("a removal of a revision that is being replaced leaves the new one", arguments: [false, true])
  func removal(isCancelled: Bool) async throws {
    let store = try LayeredStore([upper, lower])
    upper.gate.open()
    let old = try await store.store(Data("old".utf8), for: key, metadata: metadata())
    let commit = try await held("new", store)
    let removal = Task { try await store.remove(key, ifRevision: old.revision) }
    await others()
    if isCancelled { removal.cancel() }

    upper.gate.open()
    try await commit.value
    _ = await removal.result
    for layer in [upper as any CacheStore, lower] { #expect(try await layer.text(key) == "new") }
    // In both cases, the turn was passed on.
    try await store.remove(key, ifRevision: nil)
    #expect(lower.keys.isEmpty)
  }

  @Test("a removal of all entries waits for a commit in progress, and later changes wait for the removal")
  func sweep() async throws {
    let store = try LayeredStore([upper, lower])
    let commit = try await held("old", store)
    let sweep = Task { try await store.removeAll() }
    await others()
    #expect(lower.keys == [key])

    upper.gate.open()
    try await commit.value
    try await sweep.value
    #expect(upper.inner.keys.isEmpty && lower.keys.isEmpty)
    try await store.store(Data("new".utf8), for: key, metadata: metadata())
    #expect(try await lower.text(key) == "new")
  }

  @Test("a commit that fails passes its turn on")
  func failedCommit() async throws {
    let store = try LayeredStore([upper, lower])
    let first = try await held("first", store)
    let aborted = try await store.makeWriter(for: key, metadata: metadata())
    let second = Task { await failure { _ = try await aborted.commit(trailers: nil) } }
    await others()
    aborted.abort()

    upper.gate.open()
    #expect(await second.value?.code == .truncatedBody)
    try await first.value
    try await store.store(Data("last".utf8), for: key, metadata: metadata())
    #expect(try await upper.inner.text(key) == "last")
  }
}
