import CacheCore
import CacheTesting
import Testing

@testable import DiskStore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The tests detect a file system lookup by a file that was added without incrementing the counters: only such a lookup finds it.
@Suite("Disk store: misses without a system call")
struct MissTests {
  let folder: TemporaryFolder
  let clock = ManualClock()
  let one: DiskCache
  let two: DiskCache
  let key = CacheKey(resource: "r")
  let entryPath: String
  let whole: Data

  init() async throws {
    folder = try TemporaryFolder()
    one = try folder.sharedCache(clock: clock)
    two = try folder.sharedCache(clock: clock)
    try await one.store(bytes(10), for: key, metadata: metadata(at: clock.now))
    entryPath = try #require(folder.entryFiles.first)
    whole = try file(entryPath)
    try await one.remove(key, ifRevision: nil)
    // The first lookup also checks the counters, and the count waits for the list.
    for cache in [one, two] {
      #expect(try await cache.entry(for: key) == nil)
      #expect(try await cache.entryCount == 0)
    }
  }

  private func find() async throws -> Bool {
    let (opened, variants) = (try await one.entry(for: key) != nil, try await one.variants(of: key.resource).isEmpty == false)
    #expect(opened == variants)
    return opened
  }

  @Test("a miss needs only memory and is counted while no other cache changes anything")
  func memory() async throws {
    try put(whole, entryPath)
    let misses = one.counters.misses
    #expect(try await !find())
    #expect(one.counters.misses == misses + 2)
    // Changes by this cache do not matter.
    try await one.store(bytes(10), for: CacheKey(resource: "s"), metadata: metadata(at: clock.now))
    try await one.remove(CacheKey(resource: "s"), ifRevision: nil)
    #expect(try await !find())
  }

  @Test("a change by another cache makes misses read the file system")
  func changed() async throws {
    try put(whole, entryPath)
    try await two.store(bytes(10), for: CacheKey(resource: "s"), metadata: metadata(at: clock.now))
    #expect(try await find())
  }

  @Test("misses read the file system during another cache's change, even if it never ends")
  func underWay() async throws {
    try put(whole, entryPath)
    try folder.raise(.started)
    #expect(try await find())
    _ = try await one.entryCount
    try FileManager.default.removeItem(atPath: entryPath)
    #expect(try await !find())
    _ = try await one.entryCount
    try put(whole, entryPath)
    #expect(try await find())
    try FileManager.default.removeItem(atPath: entryPath)
    try folder.raise(.finished)
    _ = try await one.entryCount
    try put(whole, entryPath)
    #expect(try await !find())
  }

  @Test("misses read the file system if it has no locks, because increments can be lost", arguments: [true, false])
  func withoutLocks(fromStart: Bool) async throws {
    let fails = Lock(fromStart)
    var calls = FileCalls.system
    calls.lock = { descriptor, mode in fails.withLock { $0 } ? .ioFailure : FileCalls.system.lock(descriptor, mode) }
    let cache = try folder.sharedCache(clock: clock, calls: calls)
    fails.withLock { $0 = true }
    if !fromStart { try await cache.store(bytes(10), for: CacheKey(resource: "s"), metadata: metadata(at: clock.now)) }
    #expect(try await cache.entry(for: key) == nil)
    _ = try await cache.entryCount
    try put(whole, entryPath)
    #expect(try await cache.entry(for: key) != nil)
    #expect(try await cache.variants(of: key.resource).isEmpty == false)
  }

  @Test("misses read the file system if the lock is lost in a search for other caches")
  func lostLock() async throws {
    let fails = Lock(false)
    var calls = FileCalls.system
    calls.lock = { descriptor, mode in
      fails.withLock { $0 } && mode & LOCK_SH != 0 ? .ioFailure : FileCalls.system.lock(descriptor, mode)
    }
    let cache = try folder.sharedCache(clock: clock, calls: calls)
    for _ in 0..<2 {
      #expect(try await cache.entry(for: key) == nil)
      #expect(try await cache.entryCount == 0)
      fails.withLock { $0 = true }
      clock.advance(by: .seconds(1))
    }
    try put(whole, entryPath)
    #expect(try await cache.entry(for: key) != nil)
    #expect(try await cache.variants(of: key.resource).isEmpty == false)
  }

  @Test("as many misses as entries bring the index up to date")
  func upToDateAgain() async throws {
    try await two.store(bytes(10), for: CacheKey(resource: "s"), metadata: metadata(at: clock.now))
    for _ in 0..<64 { #expect(try await one.entry(for: key) == nil) }
    // The list is running now. A lookup of the key before its end would leave the key uncertain until the next list.
    try await one.performMaintenance { _ in }
    try put(whole, entryPath)
    #expect(try await !find())
  }

  @Test("a cache notices immediately that another one has recreated the deleted folder")
  func madeAnew() async throws {
    try FileManager.default.removeItem(atPath: folder.root)
    try await two.store(bytes(10), for: key, metadata: metadata(at: clock.now))
    #expect(try await find())
    // The creating cache need not be the first to find the folder gone.
    _ = try await one.entryCount
    try await two.remove(key, ifRevision: nil)
    _ = try await one.entryCount
    try await one.store(bytes(10), for: CacheKey(resource: "s"), metadata: metadata(at: clock.now))
    try await two.store(bytes(10), for: key, metadata: metadata(at: clock.now))
    #expect(try await find())
  }

  @Test("a cache notices within a second that the folder was replaced by a copy")
  func replaced() async throws {
    let aside = folder.path + "/aside"
    try FileManager.default.moveItem(atPath: folder.root, toPath: aside)
    try FileManager.default.copyItem(atPath: aside, toPath: folder.root)
    try put(whole, entryPath)
    clock.advance(by: .seconds(1))
    #expect(try await find())
    // From now on, the counters of the new folder apply.
    try await two.remove(key, ifRevision: nil)
    _ = try await one.entryCount
    try put(whole, entryPath)
    try folder.raise(.started)
    try folder.raise(.finished)
    #expect(try await find())
  }

  @Test("removing all entries leaves none that memory would deny")
  func removedAll() async throws {
    try await one.removeAll()
    try FileManager.default.createDirectory(atPath: String(entryPath.dropLast(35)), withIntermediateDirectories: true)
    try put(whole, entryPath)
    #expect(try await !find())
    try await two.removeAll()
    try await two.store(bytes(10), for: key, metadata: metadata(at: clock.now))
    #expect(try await find())
  }

  @Test("only a cache that has the folder for itself relies on counters that it has read")
  func lease() async throws {
    let folder = try TemporaryFolder()
    let one = try folder.sharedCache(clock: clock)
    func relies() async throws -> Bool {
      for _ in 0..<2 { #expect(try await one.entry(for: key) == nil) }
      return one.engine.index.state.withLock { $0.leaseEnd } > .zero
    }
    _ = try await one.entryCount
    #expect(try await relies())
    var two: DiskCache? = try folder.sharedCache(clock: clock)
    try await two?.store(bytes(10), for: CacheKey(resource: "s"), metadata: metadata(at: clock.now))
    _ = try await one.entryCount
    #expect(try await !relies())
    await two?.close()
    two = nil
    try await Polling.until { [clock] in
      clock.advance(by: .seconds(1))
      return try await relies()
    }
  }

  @Test("a cache that relies on its counters finds what a cache stores that opened the folder since")
  func storedByNewcomer() async throws {
    for variant in ["", "v", "", "v"] {
      let folder = try TemporaryFolder()
      let one = try folder.sharedCache()
      let key = CacheKey(resource: "r", variant: variant)
      _ = try await one.entryCount
      for _ in 0..<2 { #expect(try await one.entry(for: key) == nil) }
      let other = try folder.sharedCache()
      try await other.store(bytes(10), for: key, metadata: metadata())
      #expect(try await one.entry(for: key) != nil)
      #expect(try await one.variants(of: key.resource).isEmpty == false)
    }
  }

  @Test("a cache that could not tell the others of itself when it opened the folder tells them before its first change")
  func lateNewcomer() async throws {
    let folder = try TemporaryFolder()
    let one = try folder.sharedCache()
    _ = try await one.entryCount
    let attempts = Lock(0)
    var calls = FileCalls.system
    calls.writeCounter = { descriptor, bytes, offset in
      let attempt = attempts.withLock { attempts in
        if offset == 256 { attempts += 1 }
        return attempts
      }
      return attempt == 1 && offset == 256 ? .failure(.ioFailure) : FileCalls.system.writeCounter(descriptor, bytes, offset)
    }
    let other = try folder.sharedCache(calls: calls)
    #expect(attempts.withLock { $0 } == 1)
    let opened = SystemClock().uptime
    try await Polling.until { SystemClock().uptime > opened + Generation.lease }
    for _ in 0..<2 { #expect(try await one.entry(for: key) == nil) }
    try await other.store(bytes(10), for: key, metadata: metadata())
    #expect(try await one.entry(for: key) != nil)
    #expect(attempts.withLock { $0 } == 2)
  }

  @Test("a closed store throws an error even for misses known from memory")
  func closed() async throws {
    await one.close()
    #expect(await failure { _ = try await one.entry(for: key) }?.code == .closed)
    #expect(await failure { _ = try await one.variants(of: "r") }?.code == .closed)
  }

  @Test("no cache misses an entry that another has stored while all store, remove and list")
  func noFalseMiss() async throws {
    let caches = [one, two, try folder.sharedCache(), try folder.sharedCache()]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, cache) in caches.enumerated() {
        group.addTask {
          for round in 0..<150 {
            let key = CacheKey(resource: "\(number)-\(round % 10)", variant: round % 3 == 0 ? "v" : "")
            #expect(try await cache.entry(for: key) == nil)
            try await cache.store(bytes(100), for: key, metadata: metadata())
            for other in caches {
              #expect(try await other.entry(for: key) != nil, "\(number), \(round)")
              #expect(try await other.variants(of: key.resource).isEmpty == false)
            }
            try await caches[round % caches.count].remove(key, ifRevision: nil)
            for other in caches { #expect(try await other.entry(for: key) == nil) }
          }
        }
        group.addTask { for _ in 0..<60 { _ = try await cache.entryCount } }
      }
      try await group.waitForAll()
    }
    for cache in caches { #expect(try await cache.entryCount == 0) }
  }
}
