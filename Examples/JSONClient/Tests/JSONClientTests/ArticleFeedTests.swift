// Tests of code that loads with Etagere: no network, no sleeps, no test server. Copy this folder as a start.
// Run them: `Scripts/test --filter JSONClientTests`
import CacheTesting
import Etagere
import Foundation
import Testing

@testable import JSONClient

@Suite("The article feed")
struct ArticleFeedTests {
  /// The origin. A request that no test has scripted is an error.
  private let origin = ScriptedDownloader()
  /// The clock of the cache. It advances only when a test advances it.
  private let clock = ManualClock()
  private let url: URL
  private let feed: ArticleFeed

  init() throws {
    url = try #require(URL(string: "https://api.example.com/articles"))
    var configuration = try ResourceManager.Configuration.standard(folder: nil)
    configuration.downloader = origin
    configuration.clock = clock
    configuration.memory = MemoryCache(clock: clock)
    feed = ArticleFeed(manager: ResourceManager(configuration), url: url)
  }

  private static let dawn = Article(id: 1, title: "Dawn")
  private static let noon = Article(id: 2, title: "Noon")

  /// Returns a response with articles, fresh for a minute.
  private static func response(_ articles: Article..., etag: String) throws -> ScriptedResponse {
    .ok(try JSONEncoder().encode(articles), etag: "\"\(etag)\"", cacheControl: "max-age=60")
  }

  private func snapshots() async throws -> [FeedSnapshot] {
    var snapshots: [FeedSnapshot] = []
    for try await snapshot in feed.snapshots() { snapshots.append(snapshot) }
    return snapshots
  }

  @Test("the first screen shows the origin's articles")
  func first() async throws {
    origin.respond(to: url, with: try Self.response(Self.dawn, etag: "1"))
    #expect(try await snapshots() == [FeedSnapshot(articles: [Self.dawn], state: .current)])
  }

  @Test("fresh articles are shown without a request")
  func fresh() async throws {
    origin.respond(to: url, with: try Self.response(Self.dawn, etag: "1"))
    _ = try await snapshots()
    clock.advance(by: .seconds(59))
    #expect(try await snapshots() == [FeedSnapshot(articles: [Self.dawn], state: .current)])
    #expect(origin.requests.count == 1)
  }

  @Test("stale articles are shown while they are revalidated")
  func stale() async throws {
    let gate = Gate()
    origin.respond(
      to: url, with: try Self.response(Self.dawn, etag: "1"), try Self.response(Self.noon, Self.dawn, etag: "2").held(by: gate))
    _ = try await snapshots()
    clock.advance(by: .seconds(61))

    var iterator = feed.snapshots().makeAsyncIterator()
    #expect(try await iterator.next() == FeedSnapshot(articles: [Self.dawn], state: .updating))
    await gate.arrived()  // The request was sent, and the origin has not responded yet.
    gate.open()
    #expect(try await iterator.next() == FeedSnapshot(articles: [Self.noon, Self.dawn], state: .current))
    #expect(try await iterator.next() == nil)
  }

  @Test("pull to refresh revalidates fresh articles with their entity tag")
  func refresh() async throws {
    origin.respond(to: url, with: try Self.response(Self.dawn, etag: "1"), .notModified())
    _ = try await snapshots()
    #expect(try await feed.refresh() == FeedSnapshot(articles: [Self.dawn], state: .current))
    #expect(origin.requests.last?.headerFields[.ifNoneMatch] == "\"1\"")
    try origin.verify()
  }

  @Test("without a network, pull to refresh shows the cached articles as offline")
  func offline() async throws {
    origin.respond(to: url, with: try Self.response(Self.dawn, etag: "1"), .failure(.offline, reason: "no network"))
    _ = try await snapshots()
    #expect(try await feed.refresh() == FeedSnapshot(articles: [Self.dawn], state: .offline(reason: "no network")))
  }

  @Test("without a network and without cached articles, pull to refresh throws")
  func offlineAndEmpty() async throws {
    origin.respond(to: url, with: .failure(.offline))
    let error = await #expect(throws: CacheError.self) { try await feed.refresh() }
    #expect(error?.code == .offline)
  }

  @Test("a body that is not JSON is a decoding error")
  func malformed() async throws {
    origin.respond(to: url, with: .ok("<html>", cacheControl: "no-cache"))
    let error = await #expect(throws: CacheError.self) { try await feed.refresh() }
    #expect(error?.code == .decodingFailed)
  }
}
