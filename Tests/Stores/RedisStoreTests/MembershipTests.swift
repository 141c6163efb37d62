#if Redis
import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
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

@Suite("Redis store: messages of a fleet", .enabled(if: RedisServer.isInstalled))
struct MembershipTests {
  /// A member that records its messages. A missed message is `nil`.
  private final class Member: Sendable {
    private final class Log: Sendable {
      let messages = Lock<[String?]>([])
    }

    private let log = Log()
    let cache: RedisCache
    private let membership: any FleetMembership

    /// - Parameter gate: Holds the handling of messages.
    init(_ server: RedisServer, _ name: String? = nil, timeout: Duration = .seconds(10), gate: Gate = Gate(isOpen: true)) throws {
      cache = try server.cache()
      membership = RedisFleet(cache, memberTimeout: timeout, member: name).join(
        receive: { [log] message, _ in
          await gate.pass()
          log.messages.withLock { $0.append(message) }
        },
        missed: { [log] in
          await gate.pass()
          log.messages.withLock { $0.append(nil) }
        })
    }

    var all: [String?] { log.messages.withLock { $0 } }
    var isCurrent: Bool { membership.isCurrent }

    func current() async throws -> Self {
      try await Polling.until { isCurrent }
      return self
    }

    func send(_ message: String) async throws(CacheError) { try await membership.broadcast(message) }

    func leave() async { await membership.leave() }

    func close() async {
      await membership.leave()
      await cache.close()
    }
  }

  @Test("a message has reached every member when the call returns")
  func broadcast() async throws {
    let server = try await RedisServer()
    var members: [Member] = []
    for _ in 0..<4 { members.append(try await Member(server).current()) }
    try await members[0].send("a")
    for member in members[1...] { #expect(member.all == [nil, "a"]) }
    try await members[1].send("b")
    for member in members[2...] { #expect(member.all == [nil, "a", "b"]) }
    for member in members { await member.close() }
  }

  @Test("a call waits for a member that handles the message slowly")
  func slow() async throws {
    let server = try await RedisServer()
    let sender = try await Member(server, timeout: .seconds(2)).current()
    let gate = Gate(isOpen: true)
    let slow = try await Member(server, timeout: .seconds(40), gate: gate).current()
    gate.close()
    let hasEnded = Lock(false)
    async let sent: Void = {
      try await sender.send("a")
      hasEnded.withLock { $0 = true }
    }()
    await gate.arrived(2)
    #expect(!hasEnded.withLock { $0 })
    gate.open()
    try await sent
    #expect(slow.all == [nil, "a"])
    for member in [sender, slow] { await member.close() }
  }

  @Test("a call does not wait for a member that has left or lost contact, and that member is not current")
  func gone() async throws {
    let server = try await RedisServer()
    let sender = try await Member(server, timeout: .milliseconds(500)).current()
    let (left, lost) = (try await Member(server).current(), try await Member(server, timeout: .milliseconds(500)).current())
    await left.leave()
    await lost.cache.close()
    try await sender.send("a")
    #expect(!left.isCurrent)
    #expect(!lost.isCurrent)
    #expect(left.all == [nil])
    for member in [sender, left, lost] { await member.close() }
  }

  @Test("a member is not current while the server is away, and catches up before it is current again")
  func outage() async throws {
    let server = try await RedisServer()
    let (one, two) = (try await Member(server, timeout: .milliseconds(500)).current(), try await Member(server).current())
    server.kill()
    try await Polling.until { !one.isCurrent }
    let error = await failure { try await one.send("a") }
    #expect(error?.code == .storeUnavailable)
    try await server.start()
    // The server has lost its data, so messages may have been lost.
    try await Polling.until { one.all == [nil, nil] && two.all == [nil, nil] }
    _ = try await (one.current(), two.current())
    try await one.send("b")
    #expect(two.all == [nil, nil, "b"])
    for member in [one, two] { await member.close() }
  }

  @Test("a member that the server does not know any more is not current while it marks its responses stale")
  func unknown() async throws {
    let server = try await RedisServer()
    let gate = Gate(isOpen: true)
    let member = try await Member(server, timeout: .seconds(40), gate: gate).current()
    gate.close()
    try server.run(["FLUSHALL"])
    await gate.arrived(2)
    #expect(!member.isCurrent)
    gate.open()
    _ = try await member.current()
    #expect(member.all == [nil, nil])
    await member.close()
  }

  @Test("a member learns that the server was restored from an older snapshot, and receives the messages after it")
  func restored() async throws {
    let server = try await RedisServer()
    let (one, two) = (try await Member(server, timeout: .seconds(2)).current(), try await Member(server).current())
    try await one.send("before")
    try server.run(["SAVE"])
    try await one.send("lost")
    server.kill()
    try await server.start()
    // The first attempts may meet the connection that was lost.
    try await Polling.until { (try? await one.send("after")) != nil }
    // The message after the snapshot may have the place of the lost one, and must not be taken for it.
    try await Polling.until { two.all.count >= 4 }
    #expect(two.all.prefix(4) == [nil, "before", "lost", nil])
    for member in [one, two] { await member.close() }
  }

  @Test("a manager that joins under a name that another one uses has its own messages")
  func sameName() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let fleet = RedisFleet(cache, memberTimeout: .seconds(10), member: "web-1")
    let received = Gate(isOpen: true)
    let first = fleet.join(receive: { _, _ in await received.pass() }, missed: {})
    let second = fleet.join(receive: { _, _ in await received.pass() }, missed: {})
    try await Polling.until { first.isCurrent && second.isCurrent }
    try await first.broadcast("a")
    #expect(received.arrivals == 1)
    try await second.broadcast("b")
    #expect(received.arrivals == 2)
    await first.leave()
    await second.leave()
    await cache.close()
  }

  @Test("a member learns that messages were removed before it could read them")
  func trimmed() async throws {
    let server = try await RedisServer()
    let sender = try await Member(server, timeout: .milliseconds(100)).current()
    let gate = Gate(isOpen: true)
    let slow = try await Member(server, timeout: .milliseconds(100), gate: gate).current()
    gate.close()
    try await sender.send("first")
    await gate.arrived(2)
    try await sender.send("second")
    try server.run([Data("DEL".utf8), Data(KeyNames(namespace: "etagere").fleet.keys[1])])
    gate.open()
    try await Polling.until { slow.all == [nil, "first", nil] }
    _ = try await slow.current()
    for member in [sender, slow] { await member.close() }
  }

  @Test("a message that could not be handled is repeated, and until then the member is not current")
  func repeated() async throws {
    let server = try await RedisServer()
    let sender = try await Member(server, timeout: .milliseconds(100)).current()
    let cache = try server.cache()
    let failures = Lock(3)
    let received = Gate(isOpen: true)
    let failing = RedisFleet(cache, memberTimeout: .milliseconds(100)).join(
      receive: { _, _ throws(CacheError) in
        let isFailing = failures.withLock { left in
          left -= 1
          return left >= 0
        }
        if isFailing { throw CacheError(.fileSystem, reason: "failing") }
        await received.pass()
      }, missed: {})
    try await Polling.until { failing.isCurrent }
    try await sender.send("a")
    await received.arrived()
    try await Polling.until { failing.isCurrent }
    #expect(failures.withLock { $0 } == -1)
    await failing.leave()
    await sender.close()
    await cache.close()
  }

  @Test("a call does not wait for a member that cannot handle the message, and that member is not current")
  func failing() async throws {
    let server = try await RedisServer()
    let sender = try await Member(server, timeout: .milliseconds(200)).current()
    let cache = try server.cache()
    let failing = RedisFleet(cache, memberTimeout: .milliseconds(200)).join(
      receive: { _, _ throws(CacheError) in throw CacheError(.fileSystem, reason: "failing") }, missed: {})
    try await Polling.until { failing.isCurrent }
    try await sender.send("a")
    #expect(!failing.isCurrent)
    await failing.leave()
    await sender.close()
    await cache.close()
  }

  @Test("a member with a name catches up with the messages since its last run")
  func named() async throws {
    let server = try await RedisServer()
    let sender = try await Member(server, timeout: .milliseconds(200)).current()
    let first = try await Member(server, "web-1").current()
    #expect(first.all == [nil])
    await first.close()
    for number in 0..<150 { try await sender.send("\(number)") }
    let second = try await Member(server, "web-1").current()
    #expect(second.all == (0..<150).map { "\($0)" })
    for member in [sender, second] { await member.close() }
  }

  @Test("a purge by tag removes the entries from the server, and from the stores of every machine")
  func purge() async throws {
    let server = try await RedisServer()
    let network = ScriptedDownloader()
    let tag = try #require(HTTPField.Name("Cache-Tag"))
    let urls = try (0..<50).map { try #require(URL(string: "https://example.com/\($0)")) }
    for url in urls { network.serve(url) { _ in .ok("a", cacheControl: "max-age=6000", fields: [tag: "news"]) } }
    var caches: [RedisCache] = []
    var managers: [(manager: ResourceManager, disk: VolatileStore, store: LayeredStore)] = []
    for _ in 0..<4 {
      let cache = try server.cache()
      let disk = VolatileStore()
      let store = try LayeredStore([disk, cache])
      caches.append(cache)
      managers.append(
        (
          ResourceManager(
            .init {
              $0.downloader = network
              $0.store = store
              $0.fleet = RedisFleet(cache, memberTimeout: .seconds(10))
              $0.validator = ETagValidator()
              // On a busy machine, loads would not wait for the server.
              ($0.storeReadTimeout, $0.storeWriteTimeout) = (nil, nil)
            }), disk, store
        ))
    }
    for (manager, _, _) in managers {
      for url in urls { _ = try await manager.load(url) }
    }
    for (_, disk, store) in managers {
      await store.flush()
      #expect(!disk.keys.isEmpty)
    }
    try await Polling.until { try await managers[0].manager.load(urls[0]).source != .network }
    #expect(try await managers[0].manager.purge(.tag("news")) == 50)
    for (_, disk, _) in managers { #expect(disk.keys.isEmpty) }
    #expect(try await caches[0].entries().isEmpty)
    for (manager, _, _) in managers { await manager.close() }
    for cache in caches { await cache.close() }
  }
}
#endif
