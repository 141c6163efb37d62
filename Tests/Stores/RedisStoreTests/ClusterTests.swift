#if Redis
import CacheCore
import CacheTesting
import LocalRedis
import Testing

@testable import RedisStore

@Suite("Redis store: clusters")
struct ClusterTests {
  /// The examples of the Redis cluster specification, and of its reference implementation.
  @Test("hash slots are those of the specification", arguments: [("123456789", 12_739), ("foo", 12_182), ("", 0)])
  func slots(text: String, slot: Int) { #expect(HashSlot.of(text.utf8) == slot) }

  @Test("entries on a node that lost their slot are found on its new node", .enabled(if: RedisServer.isInstalled))
  func moved() async throws {
    let cluster = try await RedisTestCluster()
    let cache = try cluster.cache()
    #expect(!cache.boundsLookupTime)
    let key = CacheKey(resource: "https://example.com/a")
    let variant = CacheKey(resource: key.resource, variant: "a=b")
    let entry = metadata()
    try await cache.store(bytes(200_000), for: key, metadata: entry)
    let slot = HashSlot.of(HashTag(key.resource).bytes)
    let source = try #require(cluster.servers.firstIndex { (try? !$0.keys.isEmpty) == true })
    let target = (source + 1) % 3
    try await cluster.migrate(slot, from: source, to: target) {
      // All keys are on the target. The source still has the slot, and redirects for the missing keys.
      #expect(try await cache.bytes(key) == bytes(200_000))
      try await cache.store(bytes(100_000), for: key, metadata: entry)
      // An entry that neither server has, and a small one in place of a large one.
      try await cache.store(bytes(10), for: variant, metadata: entry)
      #expect(try await cache.bytes(variant) == bytes(10))
      try await cache.store(bytes(20), for: key.with(transform: "small"), metadata: entry)
    }
    #expect(try await cache.bytes(key) == bytes(100_000))
    #expect(try await cache.bytes(variant) == bytes(10))
    #expect(try await cache.bytes(key.with(transform: "small")) == bytes(20))
    try await cache.remove(variant, ifRevision: nil)
    try await cache.remove(key.with(transform: "small"), ifRevision: nil)
    #expect(try await cache.updateMetadata(of: key, to: entry, ifRevision: entry.revision))
    #expect(try await cache.entries().map(\.key) == [key])
    #expect(cache.counters.redirections > 0)
    try await cache.removeAll()
    #expect(try await cache.bytes(key) == nil)
    await cache.close()
  }

  @Test(
    "tags are found on all nodes, and a lost node makes only its own entries unavailable", .enabled(if: RedisServer.isInstalled))
  func nodes() async throws {
    let cluster = try await RedisTestCluster()
    for server in cluster.servers { try server.run(["CONFIG", "SET", "cluster-require-full-coverage", "no"]) }
    let cache = try cluster.cache()
    for number in 0..<60 {
      try await cache.store(bytes(100), for: CacheKey(resource: "\(number)"), metadata: metadata(tags: "all"))
    }
    #expect(try cluster.servers.allSatisfy { try !$0.keys.isEmpty })
    #expect(try await cache.keys(tagged: "all").count == 60)
    cluster.servers[1].kill()
    var outcomes: [CacheError.Code?: Int] = [:]
    for number in 0..<60 {
      let error = await failure { _ = try await cache.entry(for: CacheKey(resource: "\(number)")) }
      outcomes[error?.code, default: 0] += 1
    }
    #expect(Set(outcomes.keys) == [nil, .storeUnavailable])
    await cache.close()
  }
}

extension RedisTestCluster {
  /// Moves a slot. `during` runs when the target imports the slot and all of its keys have been moved.
  fileprivate func migrate(_ slot: Int, from source: Int, to target: Int, during: () async throws -> Void) async throws {
    let identifiers = try servers.map { try $0.run(["CLUSTER", "MYID"]).split(separator: "\r\n").last.map(String.init) ?? "" }
    try servers[target].require(["CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", identifiers[source]])
    try servers[source].require(["CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", identifiers[target]])
    try await move(slot, from: source, to: target)
    try await during()
    try await move(slot, from: source, to: target)
    // The target first, as Redis documents it. Otherwise no server has the slot for a moment.
    for index in [target, source] + servers.indices.filter({ $0 != target && $0 != source }) {
      try servers[index].require(["CLUSTER", "SETSLOT", "\(slot)", "NODE", identifiers[target]])
    }
  }

  /// Moves keys until the source has none. A single key that stays, as after a timeout of `MIGRATE`, makes the source refuse
  /// every command with more than one key.
  private func move(_ slot: Int, from source: Int, to target: Int) async throws {
    try await Polling.until(limit: 20) {
      let keys = try servers[source].run(["CLUSTER", "GETKEYSINSLOT", "\(slot)", "100"]).split(separator: "\r\n")
        .filter { !$0.hasPrefix("*") && !$0.hasPrefix("$") }.map(String.init)
      guard !keys.isEmpty else { return true }
      let reply = try servers[source].run(
        ["MIGRATE", "127.0.0.1", "\(servers[target].portNumber)", "", "0", "60000", "REPLACE", "KEYS"] + keys)
      // After a timeout, it is tried again.
      try #require(!reply.hasPrefix("-") || reply.hasPrefix("-IOERR"), "\(reply)")
      return false
    }
  }
}
#endif
