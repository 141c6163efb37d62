import CacheCore
import CacheTesting
import DiskStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: lookups of several entries")
struct BatchTests {
  let folder: TemporaryFolder
  let disk = SlowDisk()
  let cache: DiskCache

  init() throws {
    folder = try TemporaryFolder()
    cache = try DiskCache(path: folder.path, configuration: .init(ioWidth: 2), calls: disk.calls)
  }

  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "\(number)") }

  @Test("each key counts as one lookup however often it is named, and a damaged entry is a miss")
  func counters() async throws {
    for number in 0..<100 { try await cache.store(bytes(1_000 + number), for: key(number), metadata: metadata()) }
    try put(Data("x".utf8), folder.entryFiles[7])
    let found = try await cache.values(for: (0..<150).map { key($0 % 120) })
    #expect(found.count == 99)
    for (key, entry) in found { #expect(try await entry.body.collect() == bytes(1_000 + (Int(key.resource) ?? 0))) }
    #expect(cache.counters.hits == 99)
    #expect(cache.counters.misses == 21)
    #expect(cache.counters.damaged == 1)
    #expect(folder.entryFiles.count == 99)
  }

  @Test("a batch waits for an entry that is being stored, and other lookups do not wait", .timeLimit(.minutes(30)))
  func order() async throws {
    for number in 0..<3 { try await cache.store(bytes(10), for: key(number), metadata: metadata()) }
    let before = disk.gate.arrivals
    disk.gate.close()
    let store = Task { try await cache.store(bytes(20), for: key(1), metadata: metadata()) }
    await disk.gate.arrived(before + 1)
    #expect(try await cache.values(for: [key(0), key(2), key(5)]).count == 2)
    let look = Task { try await cache.values(for: [key(0), key(1), key(2)]) }
    for _ in 0..<100 { await Task.yield() }
    disk.gate.open()
    _ = try await store.value
    let found = try await look.value
    #expect(found.count == 3)
    #expect(try await found[key(1)]?.body.collect() == bytes(20))
  }

  @Test("a closed store throws an error for a batch")
  func closed() async throws {
    try await cache.store(bytes(10), for: key(0), metadata: metadata())
    await cache.close()
    #expect(await failure { _ = try await cache.values(for: [key(0), key(1)]) }?.code == .closed)
  }
}
