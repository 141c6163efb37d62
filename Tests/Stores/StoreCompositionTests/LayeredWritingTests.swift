import CacheCore
import CacheTesting
import StoreComposition
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Layered store: storing")
struct LayeredWritingTests {
  private let key = CacheKey(resource: "https://example.com/a")
  private let gone = CacheError(.fileSystem, reason: "the disk is gone")

  @Test("with writing through, an entry is in every layer when the commit returns")
  func through() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    let store = try LayeredStore([upper, lower])

    let stored = try await store.store(Data("kept".utf8), for: key, metadata: metadata())

    #expect(stored.bodyLength == 4)
    for layer in [upper, lower] { #expect(try await layer.text(key) == "kept") }
  }

  @Test("with writing back, the commit waits only for the first accepting layer, and the others get the entry later")
  func back() async throws {
    let (refusing, upper, lower) = (NullStore(), VolatileStore(), HeldStore())
    let store = try LayeredStore([refusing, upper, lower], configuration: .init(writing: .back))

    try await store.store(Data("kept".utf8), for: key, metadata: metadata())
    #expect(try await upper.text(key) == "kept")
    await lower.gate.arrived()
    #expect(lower.inner.keys.isEmpty)

    lower.gate.open()
    await store.flush()
    #expect(try await lower.inner.text(key) == "kept")
    #expect(store.counters.writtenBack == 1)
  }

  @Test("while a new entry is copied down, the old one below is hidden")
  func backHidesOlder() async throws {
    let (upper, lower) = (VolatileStore(), HeldStore())
    try await lower.inner.store(Data("old".utf8), for: key, metadata: metadata())
    let store = try LayeredStore([upper, lower], configuration: .init(writing: .back))

    try await store.store(Data("new".utf8), for: key, metadata: metadata())
    await lower.gate.arrived()
    try await upper.removeAll()
    #expect(try await store.entry(for: key) == nil)
    #expect(try await store.variants(of: key.resource).isEmpty)

    lower.gate.open()
    await store.flush()
    #expect(try await store.text(key) == "new")
  }

  @Test("an entry lost above before it was written back does not reveal the older entry below")
  func backLoses() async throws {
    let (upper, lower) = (VolatileStore(), HeldStore())
    let other = CacheKey(resource: "https://example.com/b")
    try await lower.inner.store(Data("old".utf8), for: other, metadata: metadata())
    let store = try LayeredStore([upper, lower], configuration: .init(writing: .back))

    try await store.store(Data("first".utf8), for: key, metadata: metadata())
    await lower.gate.arrived()
    try await store.store(Data("new".utf8), for: other, metadata: metadata())
    try await upper.remove(other, ifRevision: nil)
    lower.gate.open()
    await store.flush()

    #expect(lower.inner.keys == [key])
    #expect(store.counters.lostWritesBack == 1)
  }

  @Test("an entry not yet written back when the process ends never reaches the lower layer, whose older entry reappears")
  func backEnds() async throws {
    // Given
    let (upper, lower) = (VolatileStore(), HeldStore())
    try await lower.inner.store(Data("old".utf8), for: key, metadata: metadata())
    let ended = try LayeredStore([upper, lower], configuration: .init(writing: .back))
    try await ended.store(Data("new".utf8), for: key, metadata: metadata())
    await lower.gate.arrived()

    // When
    let next = try LayeredStore([upper, lower.inner], configuration: .init(writing: .back))

    // Then
    #expect(try await next.text(key) == "new")
    await next.flush()
    try await upper.remove(key, ifRevision: nil)
    #expect(try await next.text(key) == "old")
    lower.gate.open()
    await ended.flush()
  }

  @Test("a commit waits while the backlog is full")
  func backlog() async throws {
    let lower = HeldStore()
    let store = try LayeredStore([VolatileStore(), lower], configuration: .init(writing: .back, backlog: 1))
    let keys = (0..<3).map { CacheKey(resource: "https://example.com/\($0)") }
    for key in keys.prefix(2) { try await store.store(Data("kept".utf8), for: key, metadata: metadata()) }
    await lower.gate.arrived()

    let isDone = Gate()
    let third = Task {
      try await store.store(Data("kept".utf8), for: keys[2], metadata: metadata())
      isDone.open()
      await isDone.pass()
    }
    // One entry is being written and one waits, so the backlog is full.
    for _ in 0..<100 { await Task.yield() }
    #expect(isDone.arrivals == 0)
    lower.gate.open()
    try await third.value
    await store.flush()
    #expect(Set(lower.inner.keys) == Set(keys))
  }

  @Test("concurrent commits do not reserve the same place in the backlog, and a failed one releases it")
  func reservedSpace() async throws {
    let (upper, lower) = (HeldStore(), HeldStore())
    let store = try LayeredStore([upper, lower], configuration: .init(writing: .back, backlog: 1))
    let keys = (0..<4).map { CacheKey(resource: "https://example.com/\($0)") }
    upper.gate.open()
    try await store.store(Data("kept".utf8), for: keys[0], metadata: metadata())
    await lower.gate.arrived()
    var writers: [any EntryWriter] = []
    for key in keys.dropFirst() { writers.append(try await store.makeWriter(for: key, metadata: metadata())) }
    upper.gate.close()

    // One entry is being written, so there is one place left. The other commits do not even reach the first layer.
    let arrivals = upper.gate.arrivals
    let commits = writers.map { writer in Task { _ = try await writer.commit(trailers: nil) } }
    await upper.gate.arrived(arrivals + 1)
    for _ in 0..<100 { await Task.yield() }
    #expect(upper.gate.arrivals == arrivals + 1)

    upper.inner.failure = gone
    upper.gate.letThrough()
    await upper.gate.arrived(arrivals + 2)
    upper.inner.failure = nil
    upper.gate.open()
    lower.gate.open()
    var failures = 0
    for commit in commits { if await failure({ try await commit.value }) != nil { failures += 1 } }
    #expect(failures == 1)
    await store.flush()
    #expect(lower.inner.keys.count == 3)
  }

  @Test("a layer that fails is dropped and loses its older entry", arguments: [0, 1])
  func failingLayer(failing: Int) async throws {
    let layers = [VolatileStore(), VolatileStore()]
    let store = try LayeredStore(layers)
    try await store.store(Data("old".utf8), for: key, metadata: metadata())

    layers[failing].refusesWrites = true
    try await store.store(Data("new".utf8), for: key, metadata: metadata())

    #expect(try await layers[failing].entry(for: key) == nil)
    #expect(try await layers[1 - failing].text(key) == "new")
    #expect(try await store.text(key) == "new")
    #expect(store.counters.layers[failing].failures >= 1)
  }

  @Test("a layer that cannot even remove an entry shows no old one")
  func deadLayer() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    let store = try LayeredStore([upper, lower])
    try await store.store(Data("old".utf8), for: key, metadata: metadata())

    upper.failure = gone
    try await store.store(Data("new".utf8), for: key, metadata: metadata())
    upper.failure = nil

    #expect(try await store.text(key) == "new")
    await store.flush()
    #expect(try await upper.text(key) == "new")
  }

  @Test("a write that ends because the writer was aborted is not a failure of its layer")
  func abortedMeanwhile() async throws {
    let layers = [HeldStore(), HeldStore()]
    let store = try LayeredStore(layers)
    let writer = try await store.makeWriter(for: key, metadata: metadata())
    let write = Task { try await writer.write(Data("half".utf8)) }
    await layers[0].gate.arrived()

    writer.abort()
    for layer in layers { layer.gate.open() }

    await #expect(throws: CacheError.self) { try await write.value }
    #expect(store.counters.layers.map(\.failures) == [0, 0])
    #expect(layers.allSatisfy { $0.inner.keys.isEmpty })
  }

  @Test("a layer that fails between two writes does not fail the entry")
  func failureOnTheWay() async throws {
    let (upper, lower) = (VolatileStore(), VolatileStore())
    let store = try LayeredStore([upper, lower])
    let writer = try await store.makeWriter(for: key, metadata: metadata())
    try await writer.write(Data("first ".utf8))

    upper.failure = gone
    try await writer.write(Data("second".utf8))
    _ = try await writer.commit(trailers: nil)
    upper.failure = nil

    #expect(try await lower.text(key) == "first second")
    #expect(try await store.text(key) == "first second")
  }

  @Test("if no layer accepts an entry, the error is that of the first writable layer, and the old entry stays")
  func everyLayerRefuses() async throws {
    let lower = VolatileStore()
    let store = try LayeredStore([NullStore(), lower])
    try await store.store(Data("old".utf8), for: key, metadata: metadata())

    lower.refusesWrites = true
    #expect(await failure { _ = try await store.makeWriter(for: key, metadata: metadata()) }?.code == .diskFull)
    #expect(try await store.text(key) == "old")
    let readOnly = try LayeredStore([NullStore(), ReadOnlyStore(lower)])
    #expect(await failure { _ = try await readOnly.makeWriter(for: key, metadata: metadata()) }?.code == .readOnly)
  }

  @Test("a copy to an upper layer does not overwrite a later store or removal", arguments: [false, true])
  func overtakenPromotion(isRemoval: Bool) async throws {
    let (upper, lower) = (HeldStore(), VolatileStore())
    try await lower.store(Data("old".utf8), for: key, metadata: metadata())
    let store = try LayeredStore([upper, lower])
    #expect(try await store.text(key) == "old")
    await upper.gate.arrived()

    if isRemoval {
      try await store.remove(key, ifRevision: nil)
      upper.gate.open()
    } else {
      let writer = try await store.makeWriter(for: key, metadata: metadata())
      upper.gate.open()
      try await writer.write(Data("new".utf8))
      _ = try await writer.commit(trailers: nil)
    }
    await store.flush()

    #expect(try await store.text(key) == (isRemoval ? nil : "new"))
    #expect(try await upper.inner.text(key) == (isRemoval ? nil : "new"))
  }
}
