import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Foundation
import HTTPTypes
import MemoryStore
import Testing

extension ManagerFixture {
  /// Serves and loads `url`, which is then in memory and on disk.
  @discardableResult
  fileprivate func keep(
    _ path: String, _ fields: HTTPFields = [:], options: RequestOptions = RequestOptions()
  ) async throws -> URL {
    let url = try url(path)
    network.serve(url) { request in
      request.headerFields[.ifNoneMatch] == nil
        ? .ok("body of \(path)", etag: "\"1\"", cacheControl: "max-age=600", fields: fields)
        : .notModified(cacheControl: "max-age=600")
    }
    _ = try await manager.load(url, options: options)
    return url
  }

  fileprivate func isStored(_ url: URL, options: RequestOptions = RequestOptions()) async throws -> Bool {
    try await manager.contains(url, options: options)
  }

  /// Whether a load would use the response without revalidation, in memory and after a restart.
  fileprivate func isFresh(_ url: URL) async throws -> [Bool] {
    let inMemory = try await manager.lookup(url) == .memory(isFresh: true)
    let onDisk = try await manager.lookup(url, options: RequestOptions { $0.reads = .disk }) == .disk(isFresh: true)
    return [inMemory, onDisk]
  }
}

@Suite("Purging")
struct PurgeTests {
  @Test("a selection prints in Swift notation")
  func printed() {
    #expect("\(PurgeSelection.tag("news"))" == "tag(\"news\")" && "\(PurgeSelection.everything)" == "everything")
  }

  @Test(
    "after a soft purge, the next use revalidates the response, which a 304 makes fresh again, in memory and after a restart",
    arguments: [true, false])
  func softByURL(inMemory: Bool) async throws {
    let fixture = try ManagerFixture()
    let (url, other) = (try await fixture.keep("/a"), try await fixture.keep("/b"))

    #expect(try await fixture.manager.purge(.url(url), .soft) == 1)
    #expect(try await fixture.isFresh(url) == [false, false])
    #expect(try await fixture.isFresh(other) == [true, true])
    if !inMemory { fixture.restart() }

    let confirmed = try await fixture.manager.load(url)
    #expect(confirmed.source == .revalidated && confirmed.text == "body of /a")
    #expect(fixture.network.requests.last?.headerFields[.ifNoneMatch] == "\"1\"")
    #expect(try await fixture.manager.load(url).source == .memory)
    #expect(try await fixture.isFresh(url) == [true, true])
  }

  @Test("after a soft purge, a response may be served stale as long as after the end of its lifetime")
  func softThenStale() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=600, stale-while-revalidate=30"),
      .ok("new", etag: "\"2\"", cacheControl: "max-age=600").held(by: gate))
    _ = try await fixture.manager.load(fixture.url)
    try await fixture.manager.purge(.url(fixture.url), .soft)

    fixture.clock.advance(by: .seconds(29))
    let shown = try await fixture.manager.load(fixture.url)

    #expect(shown.text == "old" && shown.isStale && shown.age == .seconds(29))
    gate.open()
    await fixture.manager.close()
  }

  @Test("a softly purged response is served if no origin responds, unless must-revalidate forbids it", arguments: [true, false])
  func softOffline(_ mayServeStale: Bool) async throws {
    let fixture = try ManagerFixture()
    let cacheControl = mayServeStale ? "max-age=600" : "max-age=600, must-revalidate"
    fixture.network.respond(to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: cacheControl), .failure(.offline))
    _ = try await fixture.manager.load(fixture.url)
    try await fixture.manager.purge(.url(fixture.url), .soft)

    if mayServeStale {
      #expect(try await fixture.manager.load(fixture.url).validation == .failed)
    } else {
      #expect(try await fixture.failure(fixture.url).code == .offline)
    }
  }

  @Test("a hard purge removes every variant and its values from both layers")
  func hardByURL() async throws {
    let fixture = try ManagerFixture()
    let other = try await fixture.keep("/other")
    for (language, text) in [("de", "Hallo"), ("nl", "hoi")] {
      fixture.network.respond(to: fixture.url, with: .ok(text, cacheControl: "max-age=600", fields: [.vary: "Accept-Language"]))
      _ = try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: [.acceptLanguage: language]))
    }

    #expect(try await fixture.manager.purge(.url(fixture.url)) == 2)
    #expect(try await !fixture.isStored(fixture.url))
    #expect(try await fixture.isStored(other))
    #expect(fixture.disk.keys.map(\.resource) == ["https://example.com/other"])
    #expect(try await fixture.manager.purge(.url(fixture.url)) == 0)
  }

  @Test("a purge by prefix matches the URIs below it, byte by byte, and no other host", arguments: PurgeMode.allCases)
  func byPrefix(_ mode: PurgeMode) async throws {
    let fixture = try ManagerFixture()
    let below = try await [fixture.keep("/news/1"), fixture.keep("/news/2?page=3"), fixture.keep("/newsletter")]
    let beside = try await [fixture.keep("/"), fixture.keep("/new")]
    let signed = try await fixture.keep("/news/signed?x=1", options: RequestOptions { $0.key = "report" })

    #expect(try await fixture.manager.purge(.prefix(fixture.url("/news/")), mode) == 3)
    #expect(try await fixture.isFresh(below[0]) == [false, false])
    #expect(try await fixture.isFresh(below[1]) == [false, false])
    #expect(try await fixture.isFresh(below[2]) == [true, true])
    let own = RequestOptions { $0.key = "report" }
    #expect(try await fixture.manager.load(signed, options: own).source == (mode == .hard ? .network : .revalidated))

    #expect(try await fixture.manager.purge(.prefix(fixture.url("/news")), mode) == (mode == .hard ? 2 : 4))
    #expect(try await fixture.isFresh(below[2]) == [false, false])
    for url in beside { #expect(try await fixture.isFresh(url) == [true, true]) }
    let host = try #require(URL(string: "HTTPS://Example.com"))
    let lookalike = try #require(URL(string: "https://example.co"))
    #expect(try await fixture.manager.purge(.prefix(lookalike), mode) == 0)
    #expect(try await fixture.manager.purge(.prefix(host), mode) == (mode == .hard ? 2 : 6))
  }

  @Test("a purge by tag matches Cache-Tag and Surrogate-Key", arguments: PurgeMode.allCases)
  func byTag(_ mode: PurgeMode) async throws {
    let fixture = try ManagerFixture()
    let listed = try await fixture.keep("/a", .field("Cache-Tag", "product-7, cache"))
    let spaced = try await fixture.keep("/b", .field("Surrogate-Key", "x product-7"))
    let other = try await fixture.keep("/c", .field("Cache-Tag", "product-77"))

    #expect(try await fixture.manager.purge(.tag("product-7"), mode) == 2)

    #expect(try await fixture.isFresh(listed) == [false, false])
    #expect(try await fixture.isFresh(spaced) == [false, false])
    #expect(try await fixture.isFresh(other) == [true, true])
    #expect(try await fixture.isStored(listed) == (mode == .soft))
    #expect(try await fixture.manager.purge(.tag(""), mode) == 0)
  }

  @Test("a purge affects the responses without a partition, one partition, or all partitions", arguments: PurgeMode.allCases)
  func partitions(_ mode: PurgeMode) async throws {
    let selections: [PurgeSelection] = [
      .url(try ManagerFixture().url), .prefix(try ManagerFixture().url), .tag("t"), .everything,
    ]
    for selection in selections {
      let fixture = try ManagerFixture()
      let (none, a, b) = (RequestOptions(), RequestOptions { $0.partition = "a" }, RequestOptions { $0.partition = "b" })
      for options in [none, a, b] { try await fixture.keep("/image.png", .field("Cache-Tag", "t"), options: options) }
      let sources = { (options: RequestOptions) in try await fixture.manager.load(fixture.url, options: options).source }
      let asked: ResourceSource = mode == .hard ? .network : .revalidated

      #expect(try await fixture.manager.purge(selection, mode) == 1)
      #expect(try await [sources(none), sources(a), sources(b)] == [asked, .memory, .memory])
      #expect(try await fixture.manager.purge(selection, mode, in: .partition("a")) == 1)
      #expect(try await [sources(none), sources(a), sources(b)] == [.memory, asked, .memory])
      #expect(try await fixture.manager.purge(selection, mode, in: .all) == 3)
      #expect(try await [sources(none), sources(a), sources(b)] == [asked, asked, asked])
    }
  }

  @Test("a purge by key matches the caller's own key")
  func byKey() async throws {
    let fixture = try ManagerFixture()
    let own = RequestOptions { $0.key = "report" }
    let url = try await fixture.keep("/signed?x=1", options: own)

    #expect(try await fixture.manager.purge(.url(url)) == 0)
    #expect(try await fixture.manager.purge(.key("report")) == 1)
    #expect(try await !fixture.isStored(url, options: own))
  }

  @Test("a purge that lists the entries also removes the values that were made from them")
  func values() async throws {
    let fixture = try ManagerFixture()
    let url = try await fixture.keep("/a", .field("Cache-Tag", "t"))
    #expect(try await fixture.manager.load(ResourceRequest(url), as: .counting(Counter())).value == "BODY OF /A")
    #expect(fixture.memory.count == 3)

    #expect(try await fixture.manager.purge(.tag("t")) == 1)

    #expect(fixture.memory.count == 0 && fixture.disk.keys.isEmpty)
  }

  @Test("a purge affects the disk if memory is empty, and its effect survives a restart", arguments: PurgeMode.allCases)
  func onDisk(_ mode: PurgeMode) async throws {
    let disk = try TemporaryDisk()
    let fixture = try ManagerFixture {
      $0.store = disk.cache
      $0.memory = nil
    }
    let url = try await fixture.keep("/a", .field("Cache-Tag", "t"))
    let large = try await fixture.keep("/large", .field("Cache-Tag", "t"))
    try await fixture.keep("/other")

    #expect(try await fixture.manager.purge(.tag("t"), mode) == 2)

    #expect(try await disk.cache.entryCount == (mode == .soft ? 3 : 1))
    for url in [url, large] {
      #expect(try await fixture.manager.load(url).source == (mode == .soft ? .revalidated : .network))
    }
  }

  @Test("a manager without a validator removes the responses that a soft purge would mark")
  func withoutValidator() async throws {
    let fixture = try ManagerFixture { $0.validator = nil }
    let url = try await fixture.keep("/a")

    #expect(try await fixture.manager.purge(.url(url), .soft) == 1)

    #expect(try await !fixture.isStored(url))
  }

  @Test("a purge of an invalid URL is refused")
  func invalid() async throws {
    let fixture = try ManagerFixture()
    let url = try #require(URL(string: "/relative"))
    for selection in [PurgeSelection.url(url), .prefix(url)] {
      let error = await #expect(throws: CacheError.self) { try await fixture.manager.purge(selection) }
      #expect(error?.code == .invalidURL)
    }
  }
}
