import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Dispatch
import Foundation
import HTTPTypes
import MemoryStore
import Testing

extension ManagerFixture {
  /// Returns the result of the work while the clock advances.
  func whileTimePasses<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let isDone = Lock(false)
    let task = Task {
      defer { isDone.withLock { $0 = true } }
      return try await work()
    }
    try await Polling.until {
      if clock.pendingSleeps > 0 { clock.advance(by: .milliseconds(50)) }
      return isDone.withLock { $0 }
    }
    return try await task.value
  }
}

@Suite("A slow durable store")
struct SlowStoreTests {
  let gate = Gate(isOpen: true)
  let folder: DownloadFolder
  let cache: DiskCache
  let fixture: ManagerFixture

  init() throws {
    folder = try DownloadFolder()
    var calls = FileCalls.system
    let (gate, system) = (gate, calls)
    calls.write = { descriptor, bytes, offset in
      let turn = DispatchSemaphore(value: 0)
      _ = gate.arrive { turn.signal() }
      turn.wait()
      return system.write(descriptor, bytes, offset)
    }
    let cache = try DiskCache(
      path: folder.url.path, configuration: .init(ioWidth: 2, pendingLimit: 6), calls: calls)
    self.cache = cache
    // The clock advances during lookups too, however long the machine takes for them.
    fixture = try ManagerFixture { ($0.store, $0.storeReadTimeout) = (cache, nil) }
  }

  /// Returns the result of a load while the clock advances.
  private func load(_ path: String, _ options: RequestOptions = RequestOptions()) async throws -> Resource<Data> {
    let (url, manager) = (try fixture.url(path), fixture.manager)
    return try await fixture.whileTimePasses { try await manager.load(url, options: options) }
  }

  @Test(
    "loads deliver their results during a blocked write, accepted responses are stored late, and the others are dropped and counted",
    .timeLimit(.minutes(30)))
  func loads() async throws {
    gate.close()
    for number in 0..<20 {
      fixture.network.respond(to: try fixture.url("/\(number)"), with: .ok("body \(number)", cacheControl: "max-age=60"))
    }
    for number in 0..<20 {
      let resource = try await load("/\(number)")
      #expect(resource.text == "body \(number)")
      #expect(resource.source == .network)
      // Memory has the response.
      #expect(try await fixture.manager.load(fixture.url("/\(number)")).source == .memory)
    }
    #expect(cache.counters.refusedWrites == 14)
    #expect(cache.counters.writes == 0)
    gate.open()
    await fixture.manager.close()
    #expect(cache.counters.writes == 6)
    #expect(cache.counters.failedWrites == 0)
    await cache.close()
    #expect(try DiskCache(path: folder.url.path).isWritable)
  }

  @Test("a response that is purged while its write is late does not come back", .timeLimit(.minutes(30)))
  func purged() async throws {
    gate.close()
    fixture.network.respond(to: fixture.url, with: .ok("old", cacheControl: "max-age=60"))
    #expect(try await load("/image.png").text == "old")
    let clearing = Task { try await fixture.manager.clear() }
    gate.open()
    try await clearing.value
    await fixture.manager.close()
    #expect(try await cache.entryCount == 0)
    #expect(fixture.memory.count == 0)
  }

  @Test(
    "a confirmed response is shown during a blocked write, and is fresh in memory", .timeLimit(.minutes(30)))
  func freshened() async throws {
    fixture.network.respond(
      to: fixture.url, with: .ok("kept", etag: "\"1\"", cacheControl: "max-age=60"),
      .notModified(etag: "\"1\"", cacheControl: "max-age=60")
    )
    #expect(try await fixture.manager.load(fixture.url).text == "kept")
    fixture.clock.advance(by: .seconds(100))
    gate.close()
    let confirmed = try await load("/image.png")
    #expect(confirmed.source == .revalidated)
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    gate.open()
    await fixture.manager.close()
    let stored = try await cache.variants(of: fixture.url.absoluteString)
    #expect(stored.first?.metadata.freshness.isFresh(at: fixture.clock.now) == true)
  }

  @Test("a long body reaches its caller during a blocked write, and is not stored", .timeLimit(.minutes(30)))
  func longBody() async throws {
    let body = Data((0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
    fixture.network.respond(to: fixture.url, with: .ok(body, cacheControl: "max-age=60"))
    gate.close()
    #expect(try await load("/image.png").data == body)
    gate.open()
    await fixture.manager.close()
    #expect(try await cache.entryCount == 0)
    await cache.close()
    let left = FileManager.default.enumerator(atPath: folder.url.path)?.compactMap { $0 as? String } ?? []
    #expect(!left.contains { $0.contains("/tmp/") && !$0.hasSuffix(".lock") }, "\(left)")
  }

  @Test("readers of a large body get all of it during a blocked write, and it is not stored", .timeLimit(.minutes(30)))
  func readAlong() async throws {
    let fixture = try ManagerFixture {
      $0.store = cache
      $0.maximumBodyInMemory = 100
    }
    let body = Data((0..<800_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
    fixture.network.respond(to: fixture.url, with: .ok(body, cacheControl: "max-age=60").chunked(by: 200_000))
    let leader = try await fixture.exchange()
    let follower = try await fixture.exchange()
    gate.close()
    let read = try await fixture.whileTimePasses {
      [try await leader.body.collect(), try await follower.body.collect()]
    }
    #expect(read == [body, body])
    #expect(fixture.network.requests.count == 1)
    gate.open()
    await fixture.manager.close()
    #expect(try await cache.entryCount == 0)
  }

  @Test("a load into the store alone waits until the write ends", .timeLimit(.minutes(30)))
  func storing() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("prefetched", cacheControl: "max-age=60"))
    gate.close()
    let url = fixture.url
    let manager = fixture.manager
    let before = gate.arrivals
    let isDone = Lock(false)
    let fetch = Task {
      defer { isDone.withLock { $0 = true } }
      return await manager.prefetch([url], into: .disk)
    }
    await gate.arrived(before + 1)
    for _ in 0..<40 {
      fixture.clock.advance(by: .milliseconds(50))
      for _ in 0..<200 { await Task.yield() }
    }
    #expect(!isDone.withLock { $0 })
    gate.open()
    #expect(await fetch.value.failed.isEmpty)
    #expect(cache.counters.writes == 1)
  }

  @Test("a load into the store alone fails if the store refuses", .timeLimit(.minutes(30)))
  func refused() async throws {
    gate.close()
    for number in 0..<6 {
      fixture.network.respond(to: try fixture.url("/\(number)"), with: .ok("body", cacheControl: "max-age=60"))
      _ = try await load("/\(number)")
    }
    fixture.network.respond(to: fixture.url, with: .ok("prefetched", cacheControl: "max-age=60"))
    let report = await fixture.manager.prefetch([fixture.url], into: .disk)
    #expect(report.failed.map(\.error.code) == [.overloaded])
    #expect(report.failed.map(\.url) == [fixture.url])
    gate.open()
    await fixture.manager.close()
  }
}
