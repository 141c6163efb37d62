#if Redis
import CacheCore
import CacheTesting
import LocalRedis
import Testing

@testable import RedisStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Redis store: lists and removals of many entries", .enabled(if: RedisServer.isInstalled))
struct JoinedCallTests {
  private static let count = 300
  private let keys = (0..<count).map { CacheKey(resource: "https://example.com/\($0)") }

  private func fill(_ cache: RedisCache) async throws {
    for key in keys { try await cache.store(bytes(10), for: key, metadata: metadata(tags: "news")) }
  }

  @Test("a single server runs a script once for several entries")
  func joined() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await fill(cache)
    try server.run(["CONFIG", "RESETSTAT"])
    #expect(try await cache.keys(tagged: "news") == Set(keys))
    try await cache.remove(keys)
    #expect((2...50).contains(try runs(server)))
    #expect(try await cache.keys(tagged: "news").isEmpty)
    #expect(try await cache.entries().isEmpty)
    await cache.close()
  }

  @Test("the value of another program among many entries is left out of lists, and does not prevent removals")
  func foreign() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await fill(cache)
    let (name, _) = cache.place(of: keys[40])
    try server.run([Data("DEL".utf8), name])
    try server.run([Data("SET".utf8), name, Data("mine".utf8)])
    #expect(try await cache.keys(tagged: "news") == Set(keys).subtracting([keys[40]]))
    #expect(try await cache.transforms(of: keys[40].resource).isEmpty)
    let error = await failure { try await cache.remove(keys) }
    #expect(error?.code == .unsupported)
    #expect(try await cache.keys(tagged: "news").isEmpty)
    #expect(try server.run([Data("GET".utf8), name]) == "$4\r\nmine")
    await cache.close()
  }

  @Test("a list fails if the server refuses a command")
  func refused() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await fill(cache)
    try server.run(["ACL", "SETUSER", "default", "-hvals"])
    let error = await failure { _ = try await cache.keys(tagged: "news") }
    #expect(error?.code == .storeUnavailable)
    await cache.close()
  }

  @Test("scripts that the server has lost are sent again")
  func lostScripts() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    try await fill(cache)
    try server.run(["SCRIPT", "FLUSH"])
    #expect(try await cache.keys(tagged: "news") == Set(keys))
    try server.run(["SCRIPT", "FLUSH"])
    try await cache.remove(keys)
    #expect(try await cache.keys(tagged: "news").isEmpty)
    await cache.close()
  }

  @Test("the only server of a cluster, used as a single server, gets a call for each entry")
  func onlyServer() async throws {
    let server = try await RedisServer(isCluster: true)
    try server.run(["CLUSTER", "ADDSLOTS"] + (0..<16_384).map(String.init))
    try await Polling.until { try server.run(["CLUSTER", "INFO"]).contains("cluster_state:ok") }
    let cache = try server.cache()
    try await fill(cache)
    #expect(try await cache.keys(tagged: "news") == Set(keys))
    try server.run(["CONFIG", "RESETSTAT"])
    try await cache.remove(keys)
    #expect(try runs(server) == Self.count)
    #expect(try await cache.keys(tagged: "news").isEmpty)
    await cache.close()
  }

  /// Returns how many times the server has run a stored script.
  private func runs(_ server: RedisServer) throws -> Int {
    let line = try #require(try server.run(["INFO", "commandstats"]).split(separator: "\r\n").first { $0.contains("_evalsha:") })
    return try #require(line.split(whereSeparator: { ":=,".contains($0) }).dropFirst(2).first.flatMap { Int($0) })
  }
}
#endif
