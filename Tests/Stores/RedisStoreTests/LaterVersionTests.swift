#if Redis
import CacheCore
import CacheTesting
import GoldenEntries
import LocalRedis
import Testing

@testable import RedisStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Redis store: keys of a later schema", .enabled(if: RedisServer.isInstalled))
struct LaterVersionTests {
  private let key = CacheKey(resource: "https://example.com/later")

  @Test("two schemas on one server do not see each other's keys, and neither changes those of the other")
  func otherPrefix() async throws {
    let server = try await RedisServer()
    var later = try Golden.dump(1)
    for index in later.commands.indices {
      let name = String(decoding: later.commands[index][1].data, as: UTF8.self)
      later.commands[index][1] = .text(name.replacing("etagere:1:", with: "etagere:2:"))
    }
    try later.run(on: server)
    let cache = try server.cache { $0.clock = ManualClock(now: GoldenEntry.end) }
    let before = try await KeyDump(cache, prefix: "etagere:2:").commands
    #expect(try await cache.entries().isEmpty)

    for entry in GoldenEntry.version1 {
      #expect(try await cache.entry(for: entry.key) == nil)
      try await cache.remove(entry.key, ifRevision: nil)
    }
    let clock = ManualClock(now: GoldenEntry.start)
    let other = try server.cache { $0.clock = clock }
    try await GoldenEntry.write(GoldenEntry.version1, to: other, clock)
    #expect(try await GoldenEntry.differencesAfterPurges(GoldenEntry.version1, in: cache) == [])
    let fleet = RedisFleet(cache, memberTimeout: .milliseconds(100), member: "web-1")
    let missed = Gate(isOpen: true)
    let member = fleet.join(receive: { _, _ in }, missed: { await missed.pass() })
    try await Polling.until { member.isCurrent }
    #expect(missed.arrivals == 1, "the messages of the other schema are not received")
    try await member.broadcast("a")
    await member.leave()
    guard case .granted(let lease) = try await fleet.requestLease(of: Golden.resource("held"), selection: "", lookedUpAt: nil)
    else { throw CacheError(.other, reason: "no lease") }
    lease.abandon()

    let after = try await KeyDump(cache, prefix: "etagere:2:").commands
    #expect(after.map(Self.withoutTime) == before.map(Self.withoutTime) && after.count == later.commands.count)
    for cache in [cache, other] { await cache.close() }
  }

  /// Returns a command without a time that depends on when the server is asked.
  private static func withoutTime(_ command: [KeyDump.Word]) -> [KeyDump.Word] {
    command[0] == .text("PEXPIRE")
      ? Array(command.prefix(2)) : command.map { if case .time = $0 { .time(0) } else { $0 } }
  }

  @Test(
    "an entry of another schema is a miss, and a store is refused with both schemas and does not change it",
    arguments: ["ETR2", "ETR0", "data"])
  func otherRecord(schema: String) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let (name, field) = cache.place(of: key)
    let record = bytes(100) + Data(schema.utf8)
    try server.run([Data("HSET".utf8), name, field, record])

    #expect(try await cache.entry(for: key) == nil)
    #expect(try await cache.variants(of: key.resource).isEmpty)
    let error = await failure { try await cache.store(bytes(10), for: key, metadata: metadata()) }
    #expect(error?.code == .unsupported)
    let found = schema == "data" ? "another schema" : schema
    #expect(error?.reason.contains("has an entry of \(found), but this store supports only ETR1") == true)
    try await cache.remove(key, ifRevision: nil)
    try await cache.markStale([key], at: SystemClock().now)
    #expect(try await !cache.updateMetadata(of: key, to: metadata(), ifRevision: .random()))
    #expect(try await cache.entries().isEmpty)

    let reply = try await cache.engine.send([RedisCommand("HGET", .data(name), .data(field))], for: HashTag(key.resource))
    #expect(reply[0].bytes == record)
    await cache.close()
  }

  @Test("a later version may add keys and parts of the metadata while this version uses the server")
  func sideBySide() async throws {
    let server = try await RedisServer()
    var dump = try Golden.dump(1)
    for (index, command) in dump.commands.enumerated() where command[0] == .text("HSET") {
      if let record = Self.extended(command[3].data) { dump.commands[index][3] = .bytes(record) }
    }
    try dump.run(on: server)
    let later = String(decoding: Data(KeyNames(namespace: "etagere").bodies(HashTag("later"))), as: UTF8.self).dropLast() + "x"
    try server.require(["SET", String(later), "later"])
    let cache = try server.cache { $0.clock = ManualClock(now: GoldenEntry.end) }

    #expect(try await GoldenEntry.differences(GoldenEntry.version1, in: cache) == [])
    let first = GoldenEntry.version1[0]
    #expect(try await cache.updateMetadata(of: first.key, to: first.metadata, ifRevision: first.metadata.revision))
    let left = try await KeyDump(cache).commands.count { $0.count > 3 && $0[3].data.contains(Self.unknown) }
    #expect(left == GoldenEntry.version1.count - 1, "an update drops unknown parts")
    #expect(try await GoldenEntry.differencesAfterChanges(GoldenEntry.version1, in: cache) == [])
    try await cache.removeAll()
    #expect(try server.run(["GET", String(later)]) == "$5\r\nlater")
    #expect(cache.counters.damaged == 0)
    await cache.close()
  }

  /// A part of metadata that this version does not know.
  private static let unknown = Data([200, 3, 0, 0, 0, 1, 2, 3])

  /// Returns a record with parts of the metadata that this version does not know, or `nil` for other values.
  private static func extended(_ value: Data) -> Data? {
    guard case .entry(let record) = EntryRecord.decode(value) else { return nil }
    let trailer = value.suffix(61)
    let bodyCount = record.isChunked ? 0 : Int(record.length)
    // The checksum and the key precede the metadata, which the count of its bytes precedes.
    let start = bodyCount + 16 + record.key.resource.utf8.count + record.key.variant.utf8.count + record.key.transform.utf8.count
    let payload = value[(start + 4)..<(value.count - 69)]
    var writer = ByteWriter()
    writer.raw(value[(bodyCount + 4)..<start])
    writer.counted(payload.prefix(1) + Self.unknown + payload.dropFirst() + Self.unknown)
    let checksum = Data(EntryRecord.bytes(of: record.metadata.revision) + writer.bytes).withUnsafeBytes { crc32c($0) }
    let description = withUnsafeBytes(of: checksum.littleEndian) { Data($0) } + writer.bytes
    return value.prefix(bodyCount) + description + EntryRecord.digits(of: description.count) + trailer
  }

  @Test("a member that receives a message with further fields treats every response as outdated")
  func laterMessage() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let (received, missed) = (Gate(isOpen: true), Gate(isOpen: true))
    let member = RedisFleet(cache, memberTimeout: .seconds(10)).join(
      receive: { _, _ in await received.pass() }, missed: { await missed.pass() })
    try await Polling.until { member.isCurrent }
    let keys = KeyNames(namespace: "etagere").fleet.keys.map { Data($0) }
    let number = "9000000000000000"
    for (command, key, words) in [
      ("XADD", keys[1], ["\(number)-0", "p", "0", "s", "x", "t", "a", "more", "b"]),
      ("HSET", keys[0], ["last", number, "later", "text"]),
    ] {
      try server.run([Data(command.utf8), key] + words.map { Data($0.utf8) })
    }
    try await Polling.until { missed.arrivals == 2 && member.isCurrent }
    #expect(received.arrivals == 0)
    await member.leave()
    await cache.close()
  }
}
#endif
