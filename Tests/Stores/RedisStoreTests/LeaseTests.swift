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

@Suite("Redis store: leases", .enabled(if: RedisServer.isInstalled))
struct LeaseTests {
  private let key = CacheKey(resource: "https://example.com/a")

  @Test("one process holds a lease until its end, and the others learn of the response")
  func exclusive() async throws {
    let server = try await RedisServer()
    let (one, two) = (try server.cache(), try server.cache())
    let (first, second) = (RedisFleet(one, leaseDuration: .seconds(60)), RedisFleet(two, leaseDuration: .seconds(60)))
    let lease = try #require(try await first.request(key).lease)
    #expect(try await second.request(key).isHeld)
    #expect(
      try await second.requestLease(of: key.resource, selection: "accept: b", lookedUpAt: nil).lease != nil)
    lease.endAsStored()
    let position = try await second.position(of: key)
    #expect(position == lease.token)
    // A process that has looked for the response, and cannot use it, gets the lease.
    let next = try #require(try await second.request(key, lookedUpAt: position).lease)
    #expect(next.token > lease.token)
    await one.close()
    await two.close()
  }

  @Test("closing a cache releases the leases that have just ended")
  func closing() async throws {
    let server = try await RedisServer()
    let (one, two) = (try server.cache(), try server.cache())
    let fleets = (RedisFleet(one, leaseDuration: .seconds(60)), RedisFleet(two, leaseDuration: .seconds(60)))
    var leases: [any RequestLease] = []
    for number in 0..<50 {
      leases.append(try #require(try await fleets.0.requestLease(of: "\(number)", selection: "", lookedUpAt: nil).lease))
    }
    for lease in leases { lease.endAsStored() }
    await one.close()
    for (number, lease) in leases.enumerated() {
      let reply = try await fleets.1.requestLease(of: "\(number)", selection: "", lookedUpAt: nil)
      #expect(reply.position == lease.token)
    }
    await two.close()
  }

  @Test("a running process renews its lease")
  func renewed() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let leaseKey = Data(KeyNames(namespace: "etagere").lease(key.resource, ""))
    let lease = try #require(
      try await RedisFleet(cache, leaseDuration: .milliseconds(200)).request(key).lease)
    // On a slow machine, the lease may have expired.
    try server.run([Data("SET".utf8), leaseKey, Data("H\(lease.token)".utf8), Data("PX".utf8), Data("1000000".utf8)])
    try await Polling.until { try server.run([Data("PTTL".utf8), leaseKey]).dropFirst().utf8.count <= 3 }
    lease.abandon()
    await cache.close()
  }

  @Test("the lease of a process that has ended expires, and its late response is refused", arguments: [100, 200_000])
  func expired(size: Int) async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let fleet = RedisFleet(cache, leaseDuration: .seconds(60))
    // Nothing renews this lease, as after the end of its process.
    let lease = try server.run([
      Data("SET".utf8), Data(KeyNames(namespace: "etagere").lease(key.resource, "")), Data("H1".utf8), Data("PX".utf8),
      Data("50".utf8),
    ])
    #expect(lease == "+OK")
    let late = try await cache.makeWriter(for: key, metadata: metadata(), lease: FixedLease(key, token: 1))
    try await late.write(bytes(size, seed: 1))
    try await Polling.until { try await fleet.request(key).lease != nil }
    let writer = try await cache.makeWriter(for: key, metadata: metadata(), lease: FixedLease(key, token: .max >> 12))
    try await writer.write(bytes(size, seed: 2))
    _ = try await writer.commit(trailers: nil)
    #expect(await failure { _ = try await late.commit(trailers: nil) }?.code == .superseded)
    #expect(try await cache.bytes(key) == bytes(size, seed: 2))
    await cache.close()
  }

  @Test("a lease that its process releases is granted to another one")
  func abandoned() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let fleet = RedisFleet(cache, leaseDuration: .seconds(60))
    var lease = try await fleet.request(key).lease
    let token = try #require(lease?.token)
    lease = nil
    try await Polling.until {
      guard let next = try await fleet.request(key).lease else { return false }
      return next.token > token
    }
    await cache.close()
  }

  @Test("processes do not wait for a response that cannot be shared, for as long as stated")
  func notShared() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let fleet = RedisFleet(cache, leaseDuration: .seconds(60))
    let lease = try #require(try await fleet.request(key).lease)
    lease.endAsNotShared(for: .seconds(100))
    lease.endAsStored()
    try await Polling.until { if case .notShared = try await fleet.request(key) { true } else { false } }
    let left = try server.run([Data("PTTL".utf8), Data(KeyNames(namespace: "etagere").lease(key.resource, ""))])
    #expect((1...100_000).contains(Int(left.dropFirst()) ?? 0))
    await cache.close()
  }

  @Test("a lease that has expired is not renewed or ended by its former holder")
  func lost() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let fleet = RedisFleet(cache, leaseDuration: .seconds(60))
    let lease = try #require(try await fleet.request(key).lease)
    try server.run(["FLUSHALL"])
    let next = try #require(try await fleet.request(key).lease)
    #expect(next.token > lease.token)
    lease.endAsStored()
    next.endAsStored()
    #expect(try await fleet.position(of: key) == next.token)
    await cache.close()
  }

  @Test("a lease is an error at once if the server cannot be reached")
  func unreachable() async throws {
    let server = try await RedisServer(isStarted: false)
    let cache = try server.cache()
    let error = await failure { _ = try await RedisFleet(cache).request(key) }
    #expect(error?.code == .storeUnavailable)
    await cache.close()
  }

  @Test("a foreign value under the name of a lease is an error, and stays")
  func foreign() async throws {
    let server = try await RedisServer()
    let cache = try server.cache()
    let leaseKey = Data(KeyNames(namespace: "etagere").lease(key.resource, ""))
    try server.run([Data("RPUSH".utf8), leaseKey, Data("x".utf8)])
    let error = await failure { _ = try await RedisFleet(cache).request(key) }
    #expect(error?.code == .unsupported)
    #expect(try server.run([Data("LLEN".utf8), leaseKey]) == ":1")
    await cache.close()
  }

  @Test("four managers with disks and memories of their own send one request for a cold resource")
  func cold() async throws {
    let server = try await RedisServer()
    let cluster = try await Machines(4, server)
    let gate = Gate()
    cluster.network.respond(to: cluster.url, with: .ok("a", cacheControl: "max-age=600").held(by: gate))
    try await withThrowingTaskGroup(of: String.self) { group in
      for number in 0..<400 {
        group.addTask {
          String(decoding: try await cluster.managers[number % 4].load(cluster.url).data, as: UTF8.self)
        }
      }
      await gate.arrived()
      gate.open()
      for try await text in group { #expect(text == "a") }
    }
    #expect(cluster.network.requests(for: cluster.url).count == 1)
    await cluster.close()
  }

  @Test("a revalidation by one machine is used by the others, although their disks have the stale response")
  func revalidated() async throws {
    let server = try await RedisServer()
    let machines = try await Machines(3, server)
    machines.network.respond(
      to: machines.url, with: .ok("a", etag: "1", cacheControl: "max-age=60"),
      .ok("b", etag: "2", cacheControl: "max-age=60"), .notModified(etag: "2", cacheControl: "max-age=60"))
    for (round, text) in ["a", "b", "b"].enumerated() {
      for manager in machines.managers {
        #expect(String(decoding: try await manager.load(machines.url).data, as: UTF8.self) == text)
      }
      #expect(machines.network.requests(for: machines.url).count == round + 1)
      for layered in machines.stores { await layered.flush() }
      machines.clock.advance(by: .seconds(61))
    }
    await machines.close()
  }
}

/// Managers with a shared server, a shared network, and stores and memories of their own.
private struct Machines {
  let clock = ManualClock()
  let network: ScriptedDownloader
  let url: URL
  var managers: [ResourceManager] = []
  var stores: [LayeredStore] = []
  private var caches: [RedisCache] = []

  init(_ count: Int, _ server: RedisServer) async throws {
    network = ScriptedDownloader(clock: clock)
    url = try #require(URL(string: "https://example.com/a"))
    for _ in 0..<count {
      let cache = try server.cache { [clock] in $0.clock = clock }
      let store = try LayeredStore([VolatileStore(clock: clock), cache])
      caches.append(cache)
      stores.append(store)
      managers.append(
        ResourceManager(
          .init { [clock, network] in
            $0.downloader = network
            $0.store = store
            // These times are real, too. A busy member that is no longer current revalidates each response.
            $0.fleet = RedisFleet(cache, leaseDuration: .seconds(60), memberTimeout: .seconds(60))
            $0.validator = ETagValidator()
            $0.clock = ImpatientClock(clock)
            // The sleeps are real, so a busy machine must not end the wait for the store.
            ($0.storeReadTimeout, $0.storeWriteTimeout) = (nil, nil)
          }))
    }
    // A process that has just joined the fleet revalidates each response.
    let other = try #require(URL(string: "https://example.com/other"))
    network.serve(other) { _ in .ok("", cacheControl: "max-age=600") }
    for manager in managers {
      try await Polling.until { try await ![.network, .revalidated].contains(manager.load(other).source) }
    }
  }

  func close() async {
    for manager in managers { await manager.close() }
    for cache in caches { await cache.close() }
  }
}

/// A manual clock whose sleepers sleep for real. A manager that waits for a lease asks again.
private struct ImpatientClock: CacheClock {
  private let clock: ManualClock

  init(_ clock: ManualClock) { self.clock = clock }

  var now: Timestamp { clock.now }
  var uptime: Duration { clock.uptime }

  func sleep(for duration: Duration) async throws(CancellationError) { try await SystemClock().sleep(for: duration) }
}

/// A lease that no server has granted.
private final class FixedLease: RequestLease {
  let resource: String
  let selection = ""
  let token: UInt64

  init(_ key: CacheKey, token: UInt64) { (resource, self.token) = (key.resource, token) }

  func endAsStored() {}
  func endAsNotShared(for duration: Duration) {}
  func abandon() {}
}

extension LeaseReply {
  fileprivate var lease: (any RequestLease)? { if case .granted(let lease) = self { lease } else { nil } }

  fileprivate var position: UInt64? { if case .stored(let position) = self { position } else { nil } }

  fileprivate var isHeld: Bool { if case .held = self { true } else { false } }
}

extension RedisFleet {
  fileprivate func request(_ key: CacheKey, lookedUpAt known: UInt64? = nil) async throws -> LeaseReply {
    try await requestLease(of: key.resource, selection: "", lookedUpAt: known)
  }

  /// Returns the position of the response that another process has stored.
  fileprivate func position(of key: CacheKey) async throws -> UInt64? {
    var position: UInt64?
    try await Polling.until {
      if case .stored(let known) = try await request(key, lookedUpAt: nil) { position = known }
      return position != nil
    }
    return position
  }
}
#endif
