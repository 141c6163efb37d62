import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Volatile store")
struct VolatileStoreTests {
  private let store = VolatileStore()
  private let key = CacheKey(resource: "https://example.com/a")

  private var metadata: StoredMetadata {
    let time = Timestamp(seconds: 1_000)
    return StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a"),
      response: HTTPResponse(status: .ok), requestTime: time, responseTime: time, revision: Revision(high: 1, low: 1),
      freshness: Freshness(generatedAt: time, freshUntil: time))
  }

  @Test("the store fails on demand without losing entries")
  func failing() async throws {
    try await store.store(Data("x".utf8), for: key, metadata: metadata)
    store.failure = CacheError(.diskFull, reason: "full", path: "/disk")

    #expect(await failure { _ = try await store.entry(for: key) }?.code == .diskFull)
    #expect(await failure { _ = try await store.variants(of: key.resource) }?.code == .diskFull)
    #expect(await failure { _ = try await store.makeWriter(for: key, metadata: metadata) }?.code == .diskFull)
    #expect(await failure { try await store.removeAll() }?.code == .diskFull)

    store.failure = nil
    #expect(try await store.entry(for: key)?.body.collect() == Data("x".utf8))
  }

  @Test("a damaged entry becomes a miss when it is opened, and is removed")
  func damaged() async throws {
    try await store.store(Data("x".utf8), for: key, metadata: metadata)
    store.damage(key)
    #expect(try await store.entry(for: key) == nil)
    #expect(store.keys.isEmpty)
    #expect(store.opened == 1)
  }

  @Test("a writer that fails leaves no entry")
  func failingWriter() async throws {
    let writer = try await store.makeWriter(for: key, metadata: metadata)
    try await writer.write(Data("half".utf8))
    store.failure = CacheError(.diskFull, reason: "full")
    #expect(await failure { try await writer.write(Data("more".utf8)) }?.code == .diskFull)
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .diskFull)
    store.failure = nil
    #expect(try await store.entry(for: key) == nil)
  }

  @Test("a writer accepts nothing after its end")
  func misuse() async throws {
    let writer = try await store.makeWriter(for: key, metadata: metadata)
    _ = try await writer.commit(trailers: nil)
    #expect(await failure { try await writer.write(Data("late".utf8)) }?.code == .misuse)
    #expect(await failure { _ = try await writer.commit(trailers: nil) }?.code == .misuse)
    writer.abort()
    #expect(try await store.entry(for: key) != nil)
  }
}
