#if Redis
import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import HTTPTypes
import LocalRedis
import RedisStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Redis store: cache tags", .enabled(if: RedisServer.isInstalled))
struct TagTests {
  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "https://example.com/\(number)") }

  @Test(
    "entries with a tag are found without a scan if the server evicts nothing, and with one otherwise", arguments: [true, false])
  func found(hasIndex: Bool) async throws {
    let server = try await RedisServer(hasIndex ? [] : ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"])
    let cache = try server.cache()
    for number in 0..<30 {
      let tags = number.isMultiple(of: 3) ? "news, sport" : number.isMultiple(of: 2) ? "sport" : nil
      try await cache.store(bytes(100), for: key(number), metadata: metadata(tags: tags))
    }
    try await cache.store(bytes(100), for: key(0).with(transform: "small"), metadata: metadata(tags: "news"))
    #expect(
      try await cache.keys(tagged: "news")
        == Set(stride(from: 0, to: 30, by: 3).map(key) + [key(0).with(transform: "small")]))
    #expect(try await cache.keys(tagged: "sport").count == 20)
    #expect(try await cache.keys(tagged: "new").isEmpty)
    #expect(try server.run(["INFO", "commandstats"]).contains("cmdstat_scan:") != hasIndex)
    await cache.close()
  }

  @Test("a tag that a later response or a 304 adds is found, and one that it drops is not")
  func changed() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let first = metadata(tags: "a")
    try await cache.store(bytes(100), for: key(1), metadata: first)
    var updated = first
    updated.response = metadata(tags: "b").response
    #expect(try await cache.updateMetadata(of: key(1), to: updated, ifRevision: first.revision))
    #expect(try await cache.keys(tagged: "a").isEmpty)
    #expect(try await cache.keys(tagged: "b") == [key(1)])
    try await cache.store(bytes(100), for: key(1), metadata: metadata(tags: "c"))
    #expect(try await cache.keys(tagged: "b").isEmpty)
    #expect(try await cache.keys(tagged: "c") == [key(1)])
    await cache.close()
  }

  @Test("the index of a tag expires with the last entry that has it")
  func expires() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    for seconds in [1_000, 50] {
      let entry = metadata(tags: "a", expiration: .after(.seconds(seconds)))
      try await cache.store(bytes(100), for: key(seconds), metadata: entry)
    }
    let index = try #require(try server.keys.first { $0.hasSuffix("g") })
    #expect((900...1_060).contains(try #require(Int(server.run(["TTL", index]).dropFirst()))))
    await cache.close()
  }

  @Test("a manager purges by tag, hard and soft", arguments: PurgeMode.allCases)
  func purge(mode: PurgeMode) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let url = try #require(URL(string: "https://example.com/1"))
    let origin = ScriptedDownloader()
    let tag = try #require(HTTPField.Name("Cache-Tag"))
    origin.respond(to: url, with: .ok("one", etag: "\"1\"", cacheControl: "max-age=600", fields: [tag: "news"]))
    origin.respond(to: url, with: .ok("two", etag: "\"2\"", cacheControl: "max-age=600"))
    let manager = ResourceManager(
      .init {
        $0.downloader = origin
        $0.store = cache
        $0.validator = ETagValidator()
        // On a busy machine, loads would not wait for the server.
        ($0.storeReadTimeout, $0.storeWriteTimeout) = (nil, nil)
      })
    #expect(try await manager.load(url).source == .network)
    #expect(try await manager.load(url).source == .disk)
    #expect(try await manager.purge(.tag("news"), mode) == 1)
    #expect(try await String(decoding: manager.load(url).data, as: UTF8.self) == "two")
    #expect(origin.requests.count == 2)
    #expect((origin.requests[1].headerFields[.ifNoneMatch] == "\"1\"") == (mode == .soft))
    await cache.close()
  }
}
#endif
