#if SQLite && Redis
import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Foundation
import LocalRedis
import RedisStore
import SQLiteStore
import StoreComposition
import Testing

@Suite("Parts in each store", .enabled(if: RedisServer.isInstalled), .timeLimit(.minutes(30))) struct PartStoreTests {
  enum Kind: CaseIterable { case disk, database, server, layered }

  /// Entries that outlive the store which has written them.
  private struct Place {
    let kind: Kind
    let folder: DownloadFolder
    let server: RedisServer?

    init(_ kind: Kind) async throws {
      self.kind = kind
      folder = try DownloadFolder()
      server = kind == .server || kind == .layered ? try await RedisServer() : nil
    }

    private func disk(_ clock: any CacheClock) throws -> DiskCache {
      try DiskCache(folder: folder.file("disk"), configuration: .init(clock: clock))
    }

    private func redis(_ clock: any CacheClock) throws -> RedisCache {
      try RedisCache(
        url: try #require(server).url,
        configuration: .init { ($0.clock, $0.timeout, $0.connectTimeout) = (clock, .seconds(60), .seconds(60)) })
    }

    /// Calls `body` with a new manager on a newly opened store, without a memory store.
    func withManager(_ origin: RangeServer, _ body: (ManagerFixture) async throws -> Void) async throws {
      var close: () async -> Void = {}
      let (fixture, _) = try ManagerFixture.combining(0) { configuration in
        configuration.memory = nil
        let clock = configuration.clock
        switch kind {
        case .disk:
          let disk = try disk(clock)
          (configuration.store, close) = (disk, { await disk.close() })
        case .database:
          let database = try SQLiteCache(path: folder.file("database").path, configuration: .init(clock: clock))
          (configuration.store, close) = (database, { await database.close() })
        case .server:
          let redis = try redis(clock)
          (configuration.store, close) = (redis, { await redis.close() })
        case .layered:
          let (disk, redis) = (try disk(clock), try redis(clock))
          configuration.store = try LayeredStore([disk, redis])
          close = {
            await disk.close()
            await redis.close()
          }
        }
      }
      fixture.network.serve(fixture.url) { origin.response(to: $0) }
      do {
        try await body(fixture)
      } catch {
        await close()
        throw error
      }
      await fixture.manager.close()
      await close()
    }
  }

  @Test("parts that were stored before a restart are combined, and the whole replaces them", arguments: Kind.allCases)
  func restarted(kind: Kind) async throws {
    let place = try await Place(kind)
    let origin = RangeServer(300_000)
    try await place.withManager(origin) { (fixture) async throws in
      #expect(try await fixture.range("0-99999").bytes == origin.body[0..<100_000])
      #expect(try await fixture.range("200000-").bytes == origin.body[200_000...])
    }
    origin.reset()
    try await place.withManager(origin) { (fixture) async throws in
      #expect(try await fixture.range("50000-250000").bytes == origin.body[50_000...250_000])
      #expect(origin.ranges == [100_000..<200_000])
      #expect(try await fixture.range("1000-1999").bytes == origin.body[1_000..<2_000])
      #expect(try await fixture.range("-1000").bytes == origin.body.suffix(1_000))
      #expect(try await fixture.manager.load(fixture.url).data == origin.body)
    }
    try await place.withManager(origin) { (fixture) async throws in
      let file = place.folder.file()
      _ = try await fixture.manager.load(fixture.url, to: file)
      #expect(try Data(contentsOf: file) == origin.body)
      #expect(try await fixture.range(nil).bytes == origin.body)
    }
    #expect(origin.ranges.count == 1 && origin.wholes == 0)
  }

  @Test("after a transfer that breaks off, only the rest is requested, also after a restart", arguments: Kind.allCases)
  func broken(kind: Kind) async throws {
    let place = try await Place(kind)
    let origin = RangeServer(300_000)
    origin.state.withLock { $0.change = { $0.headerFields[.range] == nil ? $1.cut(after: 200_000) : $1 } }
    try await place.withManager(origin) { (fixture) async throws in
      await #expect(throws: CacheError.self) { try await fixture.range(nil) }
      // The part is stored in a task of its own.
      try await Polling.until {
        let options = RequestOptions { $0.policy = .cacheOnly }
        return try await fixture.exchange([.range: "bytes=0-199999"], options: options).head.status == .partialContent
      }
    }
    origin.reset()
    try await place.withManager(origin) { (fixture) async throws in #expect(try await fixture.range(nil).bytes == origin.body) }
    #expect(origin.ranges == [200_000..<300_000] && origin.wholes == 0)
  }

  @Test("if the origin has a new state, nothing of the stored parts is used", arguments: Kind.allCases)
  func replaced(kind: Kind) async throws {
    let place = try await Place(kind)
    let origin = RangeServer(300_000)
    try await place.withManager(origin) { (fixture) async throws in _ = try await fixture.range("0-99999") }
    origin.replace("\"2\"")
    try await place.withManager(origin) { (fixture) async throws in
      // The first bytes are of the stored part, so the body breaks off.
      let error = await #expect(throws: CacheError.self) { try await fixture.range("50000-150000") }
      #expect(error?.code == .bodyInterrupted)
      #expect(try await fixture.range("50000-150000").bytes == origin.body[50_000...150_000])
      #expect(try await fixture.range("0-999").bytes == origin.body[0..<1_000])
    }
  }
}
#endif
