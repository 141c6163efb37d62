#if Redis
import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import GoldenEntries
import HTTPTypes
import LocalRedis
import StoreComposition
import Testing

@testable import RedisStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The keys that earlier versions have written, in `Tests/Support/Golden` (`redis-1` and so on).
enum Golden {
  /// The version that is written now.
  static let current = 1

  static func file(_ version: Int) -> String { GoldenFiles.path("redis-\(version)") + "/keys.txt" }

  static func dump(_ version: Int) throws -> KeyDump { try KeyDump(text: Data(contentsOf: URL(filePath: file(version)))) }

  /// Creates the keys of a version in a server, and a cache at a time when none of the entries has expired.
  static func opened(_ version: Int, in server: RedisServer) throws -> RedisCache {
    try dump(version).run(on: server)
    return try server.cache { $0.clock = ManualClock(now: GoldenEntry.end) }
  }

  static func resource(_ name: String) -> String { "https://example.com/\(name)" }

  /// Returns a manager in a fleet.
  static func manager(_ member: String, _ cache: RedisCache, _ store: any CacheStore) -> ResourceManager {
    ResourceManager(
      .init {
        $0.downloader = ScriptedDownloader()
        $0.store = store
        $0.fleet = RedisFleet(cache, memberTimeout: .milliseconds(100), member: member)
        $0.validator = ETagValidator()
        // On a busy machine, loads would not wait for the server.
        ($0.storeReadTimeout, $0.storeWriteTimeout) = (nil, nil)
      })
  }

  /// Writes entries as this version does, and what a fleet writes: leases in each state, and the purges that a member without
  /// contact has not received.
  static func write(_ entries: [GoldenEntry], to server: RedisServer) async throws -> KeyDump {
    let clock = ManualClock(now: GoldenEntry.start)
    let cache = try server.cache { $0.clock = clock }
    try await GoldenEntry.write(entries, to: cache, clock)
    for member in ["web-1", "web-2"] {
      let manager = manager(member, cache, cache)
      try await Polling.until { manager.isCurrentInFleet }
      if member == "web-2" {
        _ = try await manager.purge(.tag("weather"))
        let map = try #require(URL(string: resource("map")))
        _ = try await manager.purge(.url(map), .soft)
      }
      await manager.close()
    }
    let fleet = RedisFleet(cache, leaseDuration: .seconds(86_400))
    var leases: [String: any RequestLease] = [:]
    for state in ["held", "stored", "not-shared", "abandoned"] {
      guard case .granted(let lease) = try await fleet.requestLease(of: resource(state), selection: "", lookedUpAt: nil) else {
        throw CacheError(.other, reason: "no lease")
      }
      leases[state] = lease
    }
    leases["stored"]?.endAsStored()
    leases["not-shared"]?.endAsNotShared(for: .seconds(86_400))
    leases["abandoned"]?.abandon()
    await cache.engine.waitForLeaseEnds()
    let dump = try await KeyDump(cache)
    leases["held"]?.abandon()
    await cache.close()
    return dump
  }
}

@Suite("Golden files: keys that an earlier version has written", .enabled(if: RedisServer.isInstalled))
struct GoldenTests {
  private let entries = GoldenEntry.version1

  @Test("every entry is read byte for byte and field for field, by each kind of lookup")
  func reads() async throws {
    let server = try await RedisServer()
    let cache = try Golden.opened(1, in: server)
    #expect(try await GoldenEntry.differences(entries, in: cache) == [])
    #expect(cache.counters.damaged == 0)
    await cache.close()
  }

  @Test("entries can be updated, replaced and removed")
  func changed() async throws {
    let server = try await RedisServer()
    let cache = try Golden.opened(1, in: server)
    #expect(try await GoldenEntry.differencesAfterChanges(entries, in: cache) == [])
    await cache.close()
  }

  @Test("entries can be purged: marked stale, and removed by tag, by key, by name and all at once")
  func purged() async throws {
    let server = try await RedisServer()
    let cache = try Golden.opened(1, in: server)
    #expect(try await GoldenEntry.differencesAfterPurges(entries, in: cache) == [])
    await cache.close()
  }

  @Test("a lease has the state that an earlier version gave it")
  func leases() async throws {
    let server = try await RedisServer()
    let cache = try Golden.opened(1, in: server)
    let fleet = RedisFleet(cache, leaseDuration: .seconds(60))
    func request(_ state: String) async throws -> LeaseReply {
      try await fleet.requestLease(of: Golden.resource(state), selection: "", lookedUpAt: nil)
    }
    if case .held = try await request("held") {} else { Issue.record("not held") }
    if case .notShared = try await request("not-shared") {} else { Issue.record("shared") }
    guard case .stored(let position) = try await request("stored") else { throw CacheError(.other, reason: "not stored") }
    #expect(position > 0)
    if case .granted(let lease) = try await request("abandoned") { lease.abandon() } else { Issue.record("not granted") }
    await cache.close()
  }

  @Test("a member that returns applies the purges that an earlier version has sent, and no others")
  func messages() async throws {
    let server = try await RedisServer()
    let cache = try Golden.opened(1, in: server)
    let disk = VolatileStore()
    let tagged = CacheKey(resource: Golden.resource("forecast"))
    let (map, other) = (CacheKey(resource: Golden.resource("map")), CacheKey(resource: Golden.resource("other")))
    for key in [tagged, map, other] {
      try await disk.store(Data(), for: key, metadata: metadata(tags: key == tagged ? "weather" : "news", fresh: .seconds(6_000)))
    }
    let manager = Golden.manager("web-1", cache, try LayeredStore([disk, cache]))
    try await Polling.until { manager.isCurrentInFleet }
    #expect(Set(disk.keys) == [map, other])
    let now = SystemClock().now
    #expect(try await disk.entry(for: map)?.metadata.freshness.isFresh(at: now) == false)
    #expect(try await disk.entry(for: other)?.metadata.freshness.isFresh(at: now) == true)
    #expect(try await GoldenEntry.differences(entries, in: cache) == [])
    await manager.close()
    await cache.close()
  }

  @Test("this version writes the same keys and values, except random identifiers and times")
  func writes() async throws {
    let server = try await RedisServer()
    let (dump, expected) = (try await Golden.write(entries, to: server), try Golden.dump(Golden.current))
    #expect(dump.normalized == expected.normalized)
    #expect(Set(dump.lifetimes.keys) == Set(expected.lifetimes.keys))
    for (key, time) in expected.lifetimes { #expect((1...time).contains(dump.lifetimes[key] ?? 0)) }
  }

  @Test("the text of a dump creates the same keys")
  func text() async throws {
    let dump = try Golden.dump(Golden.current)
    #expect(try KeyDump(text: dump.text).commands == dump.commands)
    let server = try await RedisServer()
    let cache = try Golden.opened(Golden.current, in: server)
    #expect(try await KeyDump(cache).normalized == dump.normalized)
    await cache.close()
  }

  /// `Scripts/golden` creates the keys of a new version. Existing ones are never written again, because they represent existing
  /// caches.
  @Test("the keys of a new version are created on request", .enabled(if: GoldenFiles.isRequested))
  func makes() async throws {
    let target = Golden.file(Golden.current)
    guard !FileManager.default.fileExists(atPath: target) else { return }
    let server = try await RedisServer()
    let dump = try await Golden.write(entries, to: server)
    try FileManager.default.createDirectory(
      atPath: GoldenFiles.path("redis-\(Golden.current)"), withIntermediateDirectories: true)
    try dump.text.write(to: URL(filePath: target))
  }
}
#endif
