import CacheTesting
import CacheUI
import Foundation
import Testing

@testable import PhotoList

@MainActor
@Suite("A session of the PhotoList app")
struct ListSessionTests {
  private let clock = ManualClock()

  private func withServer(_ body: (ImageServer, ListSession) async throws -> Void) async throws {
    let server = try await ImageServer.start(SmallContent.make(), lifetime: .seconds(60), link: nil)
    let session = ListSession(manager: try ListFixture().manager, clock: clock)
    session.address = server.url.absoluteString
    do {
      try await body(server, session)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  /// Shows a row whose load lasts for a given time.
  private func show(_ row: ListRow, in session: ListSession, after duration: Duration) {
    session.rowAppeared(row, in: session.generation)
    clock.advance(by: duration)
    session.imageAppeared(row, in: session.generation)
    session.loadEnded(row, in: session.generation)
  }

  @Test("a pass is named after the events before it, and has the counts of its own requests")
  func passes() async throws {
    try await withServer { server, session in
      let loader = ServerLoads()
      await session.reload(with: .asyncImage)
      try await loader.load(session.url(of: ListRow.all[0]))
      show(ListRow.all[0], in: session, after: .milliseconds(10))
      await session.reload(with: .cachedImage)
      show(ListRow.all[0], in: session, after: .milliseconds(20))
      await session.reload(with: .cachedImage)
      show(ListRow.all[0], in: session, after: .milliseconds(0))
      await session.changeServer()
      await session.reload(with: .cachedImage)
      try await loader.load(session.url(of: ListRow.all[1]))
      try await loader.load(session.url(of: ListRow.all[2]))
      show(ListRow.all[0], in: session, after: .milliseconds(30))
      await session.clearCaches()
      await session.reload(with: .asyncImage)
      show(ListRow.all[0], in: session, after: .milliseconds(40))
      await session.finish()

      #expect(
        session.results.map(\.name) == [
          "AsyncImage, first", "CachedImage, first", "CachedImage, again", "CachedImage, changed", "AsyncImage, first",
        ])
      #expect(session.results.map(\.requests) == [1, 0, 0, 2, 0])
      #expect(session.results.map(\.meanFirstMilliseconds) == [10, 20, 0, 30, 40])
      #expect(session.generation == 5 && session.current == nil && session.problem == nil)
      #expect(server.content.version == 1)
      #expect(session.table.split(separator: "\n").count == 6)
    }
  }

  @Test("a result is published when no row is loading")
  func rows() throws {
    let session = ListSession(manager: try ListFixture().manager, clock: clock)
    let (first, second, third) = (ListRow.all[0], ListRow.all[1], ListRow.all[2])
    session.rowAppeared(first, in: session.generation)
    session.rowAppeared(second, in: session.generation)
    session.rowAppeared(third, in: session.generation)
    clock.advance(by: .milliseconds(10))
    session.imageAppeared(first, in: session.generation)
    session.imageAppeared(second, in: session.generation)
    clock.advance(by: .milliseconds(10))
    session.loadEnded(first, in: session.generation)
    #expect(session.current == nil)
    session.loadEnded(second, in: session.generation)
    #expect(session.current == nil)
    session.rowDisappeared(third, in: session.generation)
    #expect(session.current?.images == 2)
    #expect(session.current?.meanFirstMilliseconds == 10 && session.current?.meanFinalMilliseconds == 20)
  }

  @Test("a row that appears again is counted again, and an image may be reported before its row appears")
  func again() throws {
    let session = ListSession(manager: try ListFixture().manager, clock: clock)
    let row = ListRow.all[0]
    show(row, in: session, after: .milliseconds(30))
    session.rowDisappeared(row, in: session.generation)
    session.imageAppeared(row, in: session.generation)
    session.rowAppeared(row, in: session.generation)
    clock.advance(by: .milliseconds(10))
    session.loadEnded(row, in: session.generation)
    session.rowAppeared(row, in: session.generation)
    session.imageAppeared(row, in: session.generation)
    #expect(session.current?.images == 2)
    #expect(session.current?.meanFirstMilliseconds == 15 && session.current?.meanFinalMilliseconds == 20)
  }

  @Test("reports from the views of an earlier pass are ignored")
  func formerPass() async throws {
    let session = ListSession(manager: try ListFixture().manager, clock: clock)
    session.address = "photos"
    let row = ListRow.all[0]
    await session.reload(with: .cachedImage)
    session.rowAppeared(row, in: 1)
    session.rowDisappeared(row, in: 0)
    session.imageAppeared(ListRow.all[1], in: 0)
    clock.advance(by: .milliseconds(10))
    session.loadEnded(row, in: 0)
    #expect(session.current == nil)
    session.loadEnded(row, in: 1)
    #expect(session.current?.meanFinalMilliseconds == 10)
  }

  @Test("a failed load has an end and no image")
  func failure() throws {
    let session = ListSession(manager: try ListFixture().manager, clock: clock)
    session.rowAppeared(ListRow.all[0], in: session.generation)
    clock.advance(by: .milliseconds(5))
    session.loadEnded(ListRow.all[0], in: session.generation)
    #expect(session.current?.images == 0)
    #expect(session.current?.meanFirstMilliseconds == nil && session.current?.meanFinalMilliseconds == 5)
  }

  @Test("an unreachable server is reported, and the pass has no counts")
  func noServer() async throws {
    let session = ListSession(manager: try ListFixture().manager, clock: clock)
    session.address = "photos"
    await session.reload(with: .asyncImage)
    #expect(session.problem == "'photos' is not the address of a server" && session.url(of: ListRow.all[0]) == nil)
    show(ListRow.all[0], in: session, after: .milliseconds(10))
    await session.finish()
    #expect(session.results.map(\.requests) == [nil])
  }

  @Test("only a POST changes the images on the server")
  func changes() async throws {
    try await withServer { server, session in
      let manager = ServerLoads()
      await #expect(throws: CacheError.self) { try await manager.load(server.url.appending(path: "change")) }
      #expect(server.content.version == 0)
      await session.changeServer()
      #expect(server.content.version == 1 && session.problem == nil)
    }
  }
}

/// A loader without a cache.
private struct ServerLoads {
  private let manager: ResourceManager = {
    var configuration = ResourceManager.Configuration()
    configuration.downloader = SessionDownloader()
    return ResourceManager(configuration)
  }()

  func load(_ url: URL?) async throws { _ = try await manager.load(try #require(url)) }
}
