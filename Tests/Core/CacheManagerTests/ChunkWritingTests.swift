import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Writing the chunks of a body")
struct ChunkWritingTests {
  @Test("a chunk that the writer takes without waiting is not passed to write(_:), which needs a task", arguments: [true, false])
  func chunks(isStream: Bool) async throws {
    let store = TakingStore()
    let fixture = try ManagerFixture { $0.store = store }
    fixture.network.respond(to: fixture.url, with: .ok("aabbbcdd", cacheControl: "max-age=60").chunked(by: 2))
    if isStream {
      #expect(try await fixture.send().text == "aabbbcdd")
    } else {
      #expect(try await fixture.manager.load(fixture.url).text == "aabbbcdd")
    }
    await fixture.manager.close()

    // The writer refuses the chunks with a "b".
    #expect(store.calls == ["takes aa", "refuses bb", "writes bb", "refuses bc", "writes bc", "takes dd"])
    let key = try #require(store.base.keys.first)
    #expect(try await store.base.entry(for: key, range: nil)?.body.collect() == Data("aabbbcdd".utf8))
  }
}

/// A store whose writers take the chunks without a "b" without waiting.
private final class TakingStore: CacheStore {
  let id = ComponentID.unique(TakingStore.self)
  let base = VolatileStore()
  private let log = Lock<[String]>([])

  var calls: [String] { log.withLock { $0 } }

  fileprivate func note(_ call: String, _ chunk: Data) {
    log.withLock { $0.append("\(call) \(String(decoding: chunk, as: UTF8.self))") }
  }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { try await base.variants(of: resource) }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await base.entry(for: key, range: range)
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    let base = base
    let writer = CollectingWriter(metadata) { metadata, body throws(CacheError) in
      try await base.store(body, for: key, metadata: metadata)
    }
    return TakingWriter(writer, self)
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    try await base.updateMetadata(of: key, to: metadata, ifRevision: ifRevision)
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {
    try await base.remove(key, ifRevision: ifRevision)
  }

  func removeAll() async throws(CacheError) { try await base.removeAll() }
}

private final class TakingWriter: EntryWriter {
  private let base: CollectingWriter
  private let store: TakingStore

  init(_ base: CollectingWriter, _ store: TakingStore) { (self.base, self.store) = (base, store) }

  func writeWithoutWaiting(_ chunk: Data) throws(CacheError) -> Bool {
    guard !chunk.contains(UInt8(ascii: "b")) else {
      store.note("refuses", chunk)
      return false
    }
    store.note("takes", chunk)
    return try base.writeWithoutWaiting(chunk)
  }

  func write(_ chunk: Data) async throws(CacheError) {
    store.note("writes", chunk)
    try await base.write(chunk)
  }

  func commit(trailers: HTTPFields?) async throws(CacheError) -> StoredMetadata { try await base.commit(trailers: trailers) }

  func abort() { base.abort() }
}
