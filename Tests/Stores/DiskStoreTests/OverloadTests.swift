import CacheCore
import CacheTesting
import DiskStore
import Dispatch
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A disk whose writes a test can block.
struct SlowDisk {
  /// Blocks writes while it is closed.
  let gate = Gate(isOpen: true)

  var calls: FileCalls {
    var calls = FileCalls.system
    let (gate, system) = (gate, calls)
    calls.write = { descriptor, bytes, offset in
      let turn = DispatchSemaphore(value: 0)
      _ = gate.arrive { turn.signal() }
      turn.wait()
      return system.write(descriptor, bytes, offset)
    }
    return calls
  }
}

@Suite("Disk store: overload")
struct OverloadTests {
  let folder: TemporaryFolder
  let disk = SlowDisk()

  init() throws { folder = try TemporaryFolder() }

  private func cache(_ change: (inout DiskCache.Configuration) -> Void = { _ in }) throws -> DiskCache {
    var configuration = DiskCache.Configuration(ioWidth: 2)
    change(&configuration)
    return try DiskCache(path: folder.path, configuration: configuration, calls: disk.calls)
  }

  private func key(_ number: Int) -> CacheKey { CacheKey(resource: "\(number)") }

  /// Starts stores on the blocked disk until one is refused.
  private func fill(_ cache: DiskCache) async throws -> [Task<Void, any Error>] {
    disk.gate.close()
    var tasks: [Task<Void, any Error>] = []
    while true {
      let writer: any EntryWriter
      do throws(CacheError) {
        writer = try await cache.makeWriter(for: key(1_000 + tasks.count), metadata: metadata())
      } catch {
        #expect(error.code == .overloaded)
        return tasks
      }
      tasks.append(
        Task {
          try await writer.write(bytes(10_000))
          _ = try await writer.commit(trailers: nil)
        })
      try await Polling.until { [count = tasks.count] in cache.pendingStores == count }
    }
  }

  @Test("reads and removals do not wait for stores under other names", .timeLimit(.minutes(30)))
  func reading() async throws {
    let cache = try cache()
    for number in 0..<20 { try await cache.store(bytes(10_000), for: key(number), metadata: metadata()) }
    try await cache.store(bytes(300_000), for: key(20), metadata: metadata())
    let before = disk.gate.arrivals
    disk.gate.close()
    let stores = (100..<160).map { number in
      Task { try await cache.store(bytes(10_000), for: key(number), metadata: metadata()) }
    }
    try await Polling.until { cache.pendingStores == 60 }
    await disk.gate.arrived(before + 2)
    for number in 0..<20 {
      #expect(try await cache.bytes(key(number)) == bytes(10_000))
      #expect(try await cache.variants(of: key(number).resource).count == 1)
    }
    #expect(try await cache.bytes(key(20)) == bytes(300_000))
    try await cache.remove(key(3), ifRevision: nil)
    #expect(try await cache.entry(for: key(3)) == nil)
    #expect(disk.gate.arrivals == before + 2)
    disk.gate.open()
    for store in stores { _ = try await store.value }
    for number in 100..<160 { #expect(try await cache.bytes(key(number)) == bytes(10_000)) }
    #expect(cache.counters.refusedWrites == 0)
  }

  @Test("a read after a store of the same resource waits for it and returns its bytes", .timeLimit(.minutes(30)))
  func order() async throws {
    let cache = try cache()
    try await cache.store(bytes(10), for: key(1), metadata: metadata())
    let before = disk.gate.arrivals
    disk.gate.close()
    let store = Task { try await cache.store(bytes(20), for: key(1), metadata: metadata()) }
    await disk.gate.arrived(before + 1)
    let look = Task { try await cache.bytes(key(1)) }
    let removal = Task { try await cache.remove(CacheKey(resource: "1", variant: "v"), ifRevision: nil) }
    for _ in 0..<100 { await Task.yield() }
    disk.gate.open()
    #expect(try await look.value == bytes(20))
    try await removal.value
    _ = try await store.value
  }

  @Test("stores beyond the limit are refused and counted until the disk has caught up", .timeLimit(.minutes(30)))
  func bound() async throws {
    let cache = try cache { $0.pendingLimit = 8 }
    let stored = try await cache.store(bytes(10), for: key(1), metadata: metadata())
    let early = try await cache.makeWriter(for: key(2), metadata: metadata())
    let stores = try await fill(cache)
    #expect(stores.count == 8)
    #expect(cache.counters.refusedWrites == 1)
    #expect(await failure { _ = try await early.commit(trailers: nil) }?.code == .overloaded)
    #expect(
      await failure { _ = try await cache.updateMetadata(of: key(1), to: stored, ifRevision: stored.revision) }?.code
        == .overloaded)
    #expect(cache.counters.refusedWrites == 3)
    #expect(try await cache.bytes(key(1)) == bytes(10))
    disk.gate.open()
    for store in stores { try await store.value }
    #expect(cache.counters.writes == 9)
    #expect(cache.counters.failedWrites == 0)
    try await cache.store(bytes(20), for: key(2), metadata: metadata())
    #expect(try await cache.updateMetadata(of: key(1), to: stored, ifRevision: stored.revision))
    #expect(cache.counters.refusedWrites == 3)
    await cache.close()
    #expect(folder.temporaryFiles.isEmpty)
    #expect(folder.entryFiles.count == 10)
  }

  @Test(
    "pending bytes are bounded except for a single large chunk, and a body refused midway leaves nothing",
    .timeLimit(.minutes(30)))
  func bytesBound() async throws {
    let cache = try cache { $0.pendingSizeLimit = 100_000 }
    try await cache.store(bytes(300_000), for: key(1), metadata: metadata())
    let long = try await cache.makeWriter(for: key(2), metadata: metadata())
    try await long.write(bytes(70_000))
    let before = disk.gate.arrivals
    disk.gate.close()
    let store = Task { try await cache.store(bytes(60_000), for: key(3), metadata: metadata()) }
    await disk.gate.arrived(before + 1)
    #expect(await failure { try await long.write(bytes(70_000)) }?.code == .overloaded)
    #expect(await failure { _ = try await long.commit(trailers: nil) }?.code == .overloaded)
    // A store that fits beside it is accepted.
    let small = Task { try await cache.store(bytes(30_000), for: key(4), metadata: metadata()) }
    await disk.gate.arrived(before + 2)
    disk.gate.open()
    _ = try await store.value
    _ = try await small.value
    #expect(cache.counters.refusedWrites == 1)
    try await cache.store(bytes(300_000), for: key(2), metadata: metadata())
    await cache.close()
    #expect(folder.temporaryFiles.isEmpty)
  }

  @Test("a cancelled task's entry is still stored, and closing waits for accepted stores", .timeLimit(.minutes(30)))
  func ending() async throws {
    let cache = try cache()
    disk.gate.close()
    let stores = (0..<12).map { number in Task { try await cache.store(bytes(10_000), for: key(number), metadata: metadata()) } }
    try await Polling.until { cache.pendingStores == 12 }
    for store in stores.prefix(6) { store.cancel() }
    let end = Task { await cache.close() }
    while (await failure { _ = try await cache.entry(for: key(50)) })?.code != .closed { await Task.yield() }
    disk.gate.open()
    await end.value
    for store in stores { _ = try await store.value }
    #expect(cache.counters.writes == 12)
    #expect(folder.entryFiles.count == 12)
    #expect(folder.temporaryFiles.isEmpty)
  }
}
