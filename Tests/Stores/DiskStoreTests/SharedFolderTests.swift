import CacheCore
import CacheTesting
import DiskStore
import HTTPTypes
import Testing

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

@Suite("Disk store: several caches on one folder")
struct SharedFolderTests {
  let folder: TemporaryFolder
  let one: DiskCache
  let two: DiskCache

  init() throws {
    folder = try TemporaryFolder()
    one = try folder.sharedCache()
    two = try folder.sharedCache()
  }

  private func counters() throws -> (started: UInt64, finished: UInt64) {
    let data = try file(folder.root + "/generation")
    func number(_ offset: Int) -> UInt64 { (0..<8).reduce(0) { $0 | UInt64(data[offset + $1]) << UInt64(8 * $1) } }
    return (number(64), number(128))
  }

  @Test("an entry that one cache stores, updates or removes changes immediately for the other")
  func visibility() async throws {
    for round in 0..<20 {
      let key = CacheKey(resource: "\(round)")
      #expect(try await two.bytes(key) == nil)
      let stored = try await one.store(bytes(round * 9000), for: key, metadata: metadata())
      #expect(try await two.bytes(key) == bytes(round * 9000))
      #expect(
        try await two.updateMetadata(of: key, to: metadata(revision: stored.revision, etag: "\"2\""), ifRevision: stored.revision)
      )
      #expect(try await one.entry(for: key)?.metadata.response.headerFields[.eTag] == "\"2\"")
      #expect(try await two.entryCount == 1)
      try await two.remove(key, ifRevision: stored.revision)
      #expect(try await one.bytes(key) == nil)
      #expect(try await one.entryCount == 0)
    }
  }

  @Test("an entry committed at the moment an expired one is removed is a miss and can be stored again")
  func replacedWhileRemoved() async throws {
    // Given
    let (clock, key) = (ManualClock(), CacheKey(resource: "r"))
    try await two.store(bytes(20), for: key, metadata: metadata())
    let path = try #require(folder.entryFiles.first)
    let newer = try file(path)
    let isArmed = Lock(false)
    let replaced = Lock(0)
    var calls = FileCalls.system
    calls.unlink = { name in
      if name == path, isArmed.withLock({ $0 }), (try? put(newer, path + ".new")) != nil {
        if FileCalls.system.rename(path + ".new", path) == nil { replaced.withLock { $0 += 1 } }
      }
      return FileCalls.system.unlink(name)
    }
    let cache = try folder.sharedCache(clock: clock, calls: calls)
    try await cache.store(bytes(10), for: key, metadata: metadata(at: clock.now, expiration: .after(.seconds(1))))
    clock.advance(by: .seconds(1))

    // When
    isArmed.withLock { $0 = true }
    #expect(try await cache.bytes(key) == nil)
    isArmed.withLock { $0 = false }

    // Then
    #expect(replaced.withLock { $0 } == 1)
    #expect(try await cache.bytes(key) == nil)
    #expect(try await cache.entryCount == 0)
    try await cache.store(bytes(30), for: key, metadata: metadata())
    #expect(try await cache.bytes(key) == bytes(30))
  }

  @Test("the folder's counters increase by one around every change in every cache")
  func generation() async throws {
    var last = try counters()
    #expect(last.started == last.finished)
    let key = CacheKey(resource: "r")
    let changes: [(String, () async throws -> Void)] = [
      ("store", { try await one.store(bytes(10), for: key, metadata: metadata()) }),
      ("store", { try await two.store(bytes(300_000), for: key, metadata: metadata()) }),
      ("remove", { try await one.remove(key, ifRevision: nil) }), ("remove all", { try await two.removeAll() }),
    ]
    for (name, change) in changes {
      try await change()
      let now = try counters()
      #expect(now.started == last.started + 1, "\(name)")
      #expect(now.finished == now.started, "\(name)")
      last = now
    }
    _ = try await one.bytes(key)
    _ = try await one.totalSize
    #expect(try counters() == last)
  }

  @Test("a damaged counter file is repaired in place, and its counters never decrease")
  func damagedGeneration() async throws {
    try await one.store(bytes(10), for: CacheKey(resource: "r"), metadata: metadata())
    let before = try counters()
    let path = folder.root + "/generation"
    // Changed in place, as damage does, and not shortened, because it is mapped.
    let descriptor = open(path, O_RDWR | O_CLOEXEC)
    try #require(pwrite(descriptor, [0, 0, 0] as [UInt8], 3, 0) == 3)
    close(descriptor)
    let three = try folder.sharedCache()
    #expect(try counters() == before)
    try await three.store(bytes(10), for: CacheKey(resource: "s"), metadata: metadata())
    try await one.store(bytes(10), for: CacheKey(resource: "t"), metadata: metadata())
    #expect(try counters().started == before.started + 2)
    #expect(try await one.entryCount == 3)
  }

  @Test(
    "a counter file that another program shortens does not end the process, and no cache misses an entry",
    arguments: [0, 8, 100, 4_000])
  func shortenedGeneration(length: Int) async throws {
    for number in 0..<3 { try await one.store(bytes(10), for: CacheKey(resource: "\(number)"), metadata: metadata()) }
    for cache in [one, two] { #expect(try await cache.entryCount == 3) }
    try #require(truncate(folder.root + "/generation", off_t(length)) == 0)

    // Without a change, and with one by each cache.
    #expect(try await two.entry(for: CacheKey(resource: "a")) == nil)
    for (cache, other, name) in [(one, two, "a"), (two, one, "b"), (one, two, "c")] {
      #expect(try await other.entry(for: CacheKey(resource: name)) == nil)
      try await cache.store(bytes(20), for: CacheKey(resource: name), metadata: metadata())
      #expect(try await other.bytes(CacheKey(resource: name)) == bytes(20))
    }
    for cache in [one, two, try folder.sharedCache()] { #expect(try await cache.entryCount == 6) }
    let counts = try counters()
    #expect(counts.started == counts.finished)
  }

  @Test("caches that change the same keys concurrently read only complete entries that one of them wrote")
  func hammering() async throws {
    let caches = [one, two, try folder.sharedCache()]
    let lengths = [10, 3000, 70_000, 200_000]
    // The length of a body identifies it, and its metadata states that length.
    let bodies = lengths.map { bytes($0, seed: UInt64($0)) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, cache) in caches.enumerated() {
        group.addTask { try await hammer(cache, index, bodies) }
        group.addTask { try await hammer(cache, index + 10, bodies) }
      }
      try await group.waitForAll()
    }
    for cache in caches {
      #expect(cache.counters.damaged == 0)
      #expect(try await cache.verify().isClean)
    }
    let counts = try counters()
    #expect(counts.started == counts.finished)
    let sum = folder.allocatedSize
    for cache in caches { #expect(try await cache.totalSize == sum) }
  }

  private func hammer(_ cache: DiskCache, _ seed: Int, _ bodies: [Data]) async throws {
    var generator = SeededGenerator(state: UInt64(seed))
    for _ in 0..<150 {
      let key = CacheKey(
        resource: "\(Int.random(in: 0..<4, using: &generator))", variant: Bool.random(using: &generator) ? "v" : "")
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<4:
        let body = bodies[Int.random(in: 0..<bodies.count, using: &generator)]
        try await cache.store(body, for: key, metadata: metadata(etag: "\"\(body.count)\""))
      case 4: try await cache.remove(key, ifRevision: nil)
      case 5:
        for metadata in try await cache.variants(of: key.resource).map(\.metadata) {
          _ = try await cache.updateMetadata(of: key, to: metadata, ifRevision: metadata.revision)
        }
      case 6 where seed == 0: try await cache.removeAll()
      default:
        guard let entry = try await cache.entry(for: key) else { continue }
        let body = try await entry.body.collect()
        #expect(entry.metadata.response.headerFields[.eTag] == "\"\(body.count)\"")
        #expect(bodies.contains(body))
      }
    }
  }
}
