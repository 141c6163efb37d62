import CacheCore
import CacheTesting
import DiskStore
import Foundation
import Testing

@Suite("Disk store: bytes under names")
struct NamedDataTests {
  private let folder: TemporaryFolder
  private let clock = ManualClock()

  init() throws { folder = try TemporaryFolder() }

  @Test("bytes are returned until they are replaced, removed or expired")
  func bytes() async throws {
    let cache = try DiskCache(path: folder.path, configuration: .init(clock: clock))
    #expect(try await cache.data(for: "avatar") == nil)
    try await cache.store(Data("one".utf8), for: "avatar", now: clock.now)
    #expect(try await cache.data(for: "avatar") == Data("one".utf8))
    try await cache.store(Data("two".utf8), for: "avatar", expiration: .after(.seconds(60)), now: clock.now)
    #expect(try await cache.data(for: "avatar") == Data("two".utf8))
    clock.advance(by: .seconds(60))
    #expect(try await cache.data(for: "avatar") == nil)
    try await cache.store(Data(), for: "avatar", now: clock.now)
    #expect(try await cache.data(for: "avatar") == Data())
    try await cache.removeData(for: "avatar")
    try await cache.removeData(for: "avatar")
    #expect(try await cache.data(for: "avatar") == nil)
  }

  @Test("bytes do not collide with a response whose URL or key is their name")
  func names() async throws {
    let cache = try DiskCache(path: folder.path)
    let url = "https://example.com/a"
    try await cache.store(Data("named".utf8), for: url)
    #expect(try await cache.variants(of: url).isEmpty)
    #expect(try await cache.variants(of: ResourceID.make(uri: "", key: url)).isEmpty)
    #expect(try await cache.data(for: url) == Data("named".utf8))
  }

  @Test("bytes count in the usage of the store")
  func usage() async throws {
    let cache = try DiskCache(path: folder.path, configuration: .init(sizeLimit: 1 << 20))
    #expect(try await cache.usage() == StoreUsage(entries: 0, bytes: 0, limit: 1 << 20))
    try await cache.store(Data(count: 1_000), for: "avatar")
    let usage = try #require(await cache.usage())
    #expect(usage.entries == 1 && usage.bytes >= 1_000)
    #expect("\(usage)" == "1 entry, \(usage.bytes) of 1048576 bytes")
  }
}
