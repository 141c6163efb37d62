import CacheCore
import CacheTesting
import DiskStore
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Disk store: several entries at once")
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

  @Test("a batch removes variants and transforms with their folders, and keeps the other entries of a resource")
  func removal() async throws {
    let members = [
      CacheKey(resource: "1", variant: "v"), CacheKey(resource: "1", transform: "t"), CacheKey(resource: "2", variant: "v"),
    ]
    let keys = (0..<600).map(key) + members
    for key in keys { try await cache.store(bytes(10), for: key, metadata: metadata()) }
    let kept = [key(0), members[1]]
    try await cache.remove(keys.filter { !kept.contains($0) } + [key(1_000)])
    #expect(Set(try await cache.entries().map(\.key)) == Set(kept))
    #expect(try await cache.entryCount == 2)
    #expect(folder.entryFiles.count == 2)
    let folders = try FileManager.default.subpathsOfDirectory(atPath: folder.root + "/entries").filter { $0.hasSuffix(".d") }
    #expect(folders.count == 1)
    #expect(cache.counters.failedRemovals == 0)
  }

  @Test("a batch that removes an entry that is being stored removes it afterwards", .timeLimit(.minutes(30)))
  func removalOrder() async throws {
    for number in 0..<3 { try await cache.store(bytes(10), for: key(number), metadata: metadata()) }
    let before = disk.gate.arrivals
    disk.gate.close()
    let store = Task { try await cache.store(bytes(20), for: key(1), metadata: metadata()) }
    await disk.gate.arrived(before + 1)
    let removal = Task { try await cache.remove([key(0), key(1), key(2)]) }
    while try await cache.values(for: [key(0), key(2)]).count > 0 { await Task.yield() }
    disk.gate.open()
    _ = try await store.value
    try await removal.value
    #expect(folder.entryFiles.isEmpty)
  }

  @Test("a batch does not remove what is behind a link in place of a folder")
  func link() async throws {
    for number in 0..<20 { try await cache.store(bytes(10), for: key(number), metadata: metadata()) }
    let outside = try TemporaryFolder()
    let entries = folder.root + "/entries"
    let count = folder.entryFiles.count
    for shard in try FileManager.default.contentsOfDirectory(atPath: entries) {
      try FileManager.default.moveItem(atPath: "\(entries)/\(shard)", toPath: "\(outside.path)/\(shard)")
      try FileManager.default.createSymbolicLink(
        atPath: "\(entries)/\(shard)", withDestinationPath: "\(outside.path)/\(shard)")
    }
    try await cache.remove((0..<20).map(key))
    #expect(outside.files(below: outside.path).count == count)
  }

  @Test("a closed store throws an error for a batch")
  func closed() async throws {
    try await cache.store(bytes(10), for: key(0), metadata: metadata())
    await cache.close()
    #expect(await failure { _ = try await cache.values(for: [key(0), key(1)]) }?.code == .closed)
    #expect(await failure { try await cache.remove([key(0), key(1)]) }?.code == .closed)
  }
}
