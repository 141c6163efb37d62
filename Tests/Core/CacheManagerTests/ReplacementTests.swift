import CacheCore
import CacheManager
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Components and settings of one request")
struct ReplacementTests {
  let fixture: ManagerFixture

  init() throws {
    fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60") }
  }

  private func load(_ change: (inout RequestOptions) -> Void) async throws -> Resource<Data> {
    try await fixture.manager.load(fixture.url, options: RequestOptions(change))
  }

  @Test("a request can replace the downloader")
  func downloader() async throws {
    let other = ScriptedDownloader()
    other.respond(to: fixture.url, with: .ok("other"))

    #expect(try await load { $0.downloader = .use(other) }.text == "other")
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("a request without a downloader uses the stored response, or fails with a reason")
  func noDownloader() async throws {
    let error = await #expect(throws: CacheError.self) { _ = try await load { $0.downloader = .disabled } }
    #expect(error?.code == .noDownloader)
    _ = try await load { _ in }
    #expect(try await load { $0.downloader = .disabled }.source == .memory)
  }

  @Test("a request can replace or disable the memory store")
  func memory() async throws {
    let other = MemoryCache(clock: fixture.clock)

    _ = try await load { $0.memory = .use(other) }
    #expect(fixture.memory.count == 0 && other.count > 0)
    #expect(try await load { $0.memory = .disabled }.source == .disk)
    #expect(try await load { $0.memory = .use(other) }.source == .memory)
  }

  @Test("a request can replace or disable the durable store")
  func store() async throws {
    let other = VolatileStore()

    _ = try await load { $0.store = .use(other) }
    #expect(fixture.disk.keys.isEmpty && other.keys.count == 1)
    fixture.restart()
    #expect(try await load { $0.store = .use(other) }.source == .disk)
    fixture.restart()
    #expect(try await load { $0.store = .disabled }.source == .network)
    #expect(fixture.disk.keys.isEmpty)
  }

  @Test("a request can replace or disable the validator")
  func validator() async throws {
    let guessing = ETagValidator(defaultLifetime: .seconds(60))
    let url = try fixture.url("/unstated")
    fixture.network.respond(to: url, with: .ok("a"), .ok("b"))

    _ = try await fixture.manager.load(url, options: RequestOptions { $0.validator = .use(guessing) })
    #expect(try await fixture.manager.load(url, options: RequestOptions { $0.validator = .use(guessing) }).source == .memory)
    #expect(try await fixture.manager.load(url, options: RequestOptions { $0.validator = .disabled }).source == .memory)
    fixture.clock.advance(by: .seconds(61))
    #expect(try await fixture.manager.load(url, options: RequestOptions { $0.validator = .use(guessing) }).text == "b")
  }

  @Test("a request can replace the clock")
  func clock() async throws {
    _ = try await load { _ in }
    let later = ManualClock(now: fixture.clock.now + .seconds(61))

    #expect(try await load { $0.clock = later }.source == .network)
  }

  @Test("a request can replace the observer")
  func observer() async throws {
    let other = RecordingObserver()

    _ = try await load { $0.observer = .use(other) }

    #expect(fixture.observer.events.isEmpty && !other.events.isEmpty)
  }

  @Test("presigned URLs with the same cache key share an entry")
  func key() async throws {
    let (first, second) = (try fixture.url("/p?signature=1"), try fixture.url("/p?signature=2"))
    fixture.network.respond(to: first, with: .ok("bytes", cacheControl: "max-age=60"))
    let options = RequestOptions { $0.key = "avatar/7" }

    _ = try await fixture.manager.load(first, options: options)

    #expect(try await fixture.manager.load(second, options: options).source == .memory)
    #expect(try await fixture.manager.lookup(first) == .miss)
  }

  @Test("a response that must not be stored removes the response that it replaces, also under the caller's own key")
  func invalidatedKey() async throws {
    let options = RequestOptions { $0.key = "avatar/7" }
    let url = try fixture.url("/private")
    fixture.network.respond(to: url, with: .ok("old", etag: "\"1\""), .ok("secret", etag: "\"2\"", cacheControl: "no-store"))
    _ = try await fixture.manager.load(url, options: options)

    #expect(try await fixture.manager.load(url, options: options).text == "secret")
    #expect(fixture.disk.keys.isEmpty)
    #expect(try await fixture.manager.lookup(url, options: options) == .miss)
  }

  @Test("an unsafe request that succeeds removes the stored responses of its resource")
  func unsafeMethod() async throws {
    _ = try await load { _ in }
    fixture.network.serve(fixture.url) { _ in .response(.noContent) }

    _ = try await fixture.manager.load(ResourceRequest(fixture.url, method: .put))

    #expect(fixture.disk.keys.isEmpty)
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
  }

  @Test("a partition does not share responses with other partitions")
  func partition() async throws {
    _ = try await load { $0.partition = "a" }

    #expect(try await load { $0.partition = "a" }.source == .memory)
    #expect(try await load { $0.partition = "b" }.source == .network)
    #expect(try await load { _ in }.source == .network)
  }

  @Test("a request can limit the layers that are read")
  func reads() async throws {
    _ = try await load { _ in }

    #expect(try await load { $0.reads = .disk }.source == .disk)
    fixture.restart()
    #expect(try await load { $0.reads = .memory }.source == .network)
    #expect(try await load { $0.reads = [] }.source == .network)
  }

  @Test("a request can limit the layers that are written")
  func writes() async throws {
    _ = try await load { $0.writes = .memory }
    #expect(fixture.disk.keys.isEmpty && fixture.memory.count > 0)
    fixture.restart()
    _ = try await load { $0.writes = .disk }
    #expect(fixture.disk.keys.count == 1 && fixture.memory.count == 0)
    #expect(try await load { $0.writes = [] }.source == .disk)
    #expect(fixture.memory.count == 0)
  }

  @Test("a request can set the accepted statuses")
  func acceptedStatuses() async throws {
    let url = try fixture.url("/missing")
    fixture.network.respond(to: url, with: .response(.notFound, body: Data("not here".utf8)))

    let page = try await fixture.manager.load(url, options: RequestOptions { $0.acceptedStatuses = AcceptedStatuses(200..<500) })

    #expect(page.response.status.code == 404 && page.text == "not here")
  }

  @Test("a request can set the time to live, the priority and the largest body")
  func bounds() async throws {
    let error = await #expect(throws: CacheError.self) { _ = try await load { $0.maximumBodySize = 2 } }
    #expect(error?.code == .bodyTooLarge)
    _ = try await load {
      $0.expiration = .after(.seconds(5))
      $0.priority = .high
    }
    fixture.clock.advance(by: .seconds(5))
    #expect(try await load { $0.reads = .memory }.source == .network)
  }
}

@Suite("Redirects")
struct RedirectTests {
  @Test("redirects are followed, each is cached by its own rules, and the result lists the chain")
  func followed() async throws {
    let fixture = try ManagerFixture()
    let (second, third) = (try fixture.url("/second"), try fixture.url("/third?x=1"))
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/second", status: .movedPermanently), .redirect(to: "/second"))
    fixture.network.respond(to: second, with: .redirect(to: third.absoluteString), .redirect(to: third.absoluteString))
    fixture.network.respond(to: third, with: .ok("bytes", cacheControl: "max-age=60"))

    let resource = try await fixture.manager.load(fixture.url)
    let again = try await fixture.manager.load(fixture.url)

    #expect(resource.text == "bytes" && resource.redirects == [fixture.url, second] && resource.url == third)
    #expect(again.source == .memory && again.text == "bytes")
    #expect(fixture.network.requests(for: third).count == 1)
  }

  @Test("the redirects of a result count, also if no request was sent for it")
  func countedFromCache() async throws {
    let fixture = try ManagerFixture()
    let target = try fixture.url("/target")
    fixture.network.respond(
      to: fixture.url, with: .response(.movedPermanently, fields: [.location: "/target", .cacheControl: "max-age=60"]))
    fixture.network.respond(to: target, with: .ok("bytes", cacheControl: "max-age=60"))

    _ = try await fixture.manager.load(fixture.url)
    let again = try await fixture.manager.load(fixture.url)

    #expect(again.source == .memory && again.redirects == [fixture.url])
    #expect(again.metrics.redirects == 1 && again.metrics.attempts == 0)
  }

  @Test("a circle of redirects ends at the limit")
  func circle() async throws {
    let fixture = try ManagerFixture { $0.redirectLimit = 3 }
    fixture.network.serve(fixture.url) { _ in .redirect(to: "/image.png") }

    #expect(try await fixture.failure(fixture.url).code == .tooManyRedirects)
    #expect(fixture.network.requests.count == 4)
  }

  @Test(
    "a redirect to another scheme than HTTP is refused",
    arguments: ["file:///etc/passwd", "data:text/plain,x", "ftp://example.com/"])
  func otherSchemes(_ location: String) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .redirect(to: location))

    #expect(try await fixture.failure(fixture.url).code == .redirectRefused)
  }

  @Test("credentials and conditions are not sent to another host, but within one host")
  func credentials() async throws {
    let fixture = try ManagerFixture()
    let other = try #require(URL(string: "https://other.example/image.png"))
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/here"))
    fixture.network.respond(to: try fixture.url("/here"), with: .redirect(to: other.absoluteString))
    fixture.network.respond(to: other, with: .ok("bytes"))
    let fields: HTTPFields = [.authorization: "Bearer secret", .cookie: "a=b", .accept: "image/*"]

    _ = try await fixture.manager.load(ResourceRequest(fixture.url, headerFields: fields))

    #expect(fixture.network.requests(for: try fixture.url("/here")).first?.headerFields[.authorization] == "Bearer secret")
    let last = try #require(fixture.network.requests(for: other).first)
    #expect(last.headerFields[.authorization] == nil && last.headerFields[.cookie] == nil)
    #expect(last.headerFields[.accept] == "image/*")
  }

  @Test("a redirect that is not followed is a response like any other")
  func notFollowed() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/second"))
    let options = RequestOptions {
      $0.redirectLimit = 0
      $0.acceptedStatuses = AcceptedStatuses(300..<400)
    }

    #expect(try await fixture.manager.load(fixture.url, options: options).response.status.code == 302)
  }
}

@Suite("Lookups, removals and prefetches")
struct CacheLookupTests {
  @Test("a lookup finds memory, disk or nothing, and sends no request")
  func lookup() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)
    _ = try await fixture.manager.load(fixture.url)
    #expect(try await fixture.manager.lookup(fixture.url) == .memory(isFresh: true))
    fixture.restart()
    #expect(try await fixture.manager.lookup(fixture.url) == .disk(isFresh: true))
    fixture.clock.advance(by: .seconds(61))
    #expect(try await fixture.manager.lookup(fixture.url) == .disk(isFresh: false))
    #expect(try await fixture.manager.contains(fixture.url))
    #expect(try await !fixture.manager.contains(fixture.url, in: .memory))
    try fixture.network.verify()
  }

  @Test("removals and clearing affect the given layers")
  func removal() async throws {
    let fixture = try ManagerFixture()
    fixture.network.serve(fixture.url) { _ in .ok("bytes", cacheControl: "max-age=60") }
    _ = try await fixture.manager.load(fixture.url)
    try await fixture.manager.remove(fixture.url, from: .memory)
    #expect(try await fixture.manager.lookup(fixture.url) == .disk(isFresh: true))
    try await fixture.manager.remove(fixture.url)
    #expect(try await fixture.manager.lookup(fixture.url) == .miss)

    _ = try await fixture.manager.load(fixture.url)
    try await fixture.manager.clear(.disk)
    #expect(fixture.disk.keys.isEmpty && fixture.memory.count > 0)
    try await fixture.manager.clear()
    #expect(fixture.memory.count == 0)
  }

  @Test("removing from a disk that fails is an error, and memory is emptied")
  func failingRemoval() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.disk.failure = CacheError(.fileSystem, reason: "input/output error", path: "/cache")

    await #expect(throws: CacheError.self) { try await fixture.manager.remove(fixture.url) }
    #expect(try await !fixture.manager.contains(fixture.url, in: .memory))
  }

  @Test("prefetching skips cached resources, reports failures, and stays within its concurrency")
  func prefetch() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let urls = try (0..<6).map { try fixture.url("/\($0)") }
    for url in urls.dropLast() { fixture.network.serve(url) { _ in .ok("bytes", cacheControl: "max-age=60").held(by: gate) } }
    fixture.network.respond(to: urls[5], with: .response(.notFound))
    let warm = Task { try await fixture.manager.load(urls[0]) }
    await gate.arrived()

    let prefetch = Task { await fixture.manager.prefetch(urls, concurrency: 2) }
    await gate.arrived(2)
    #expect(fixture.network.requests.count <= 3)
    gate.open()
    _ = try await warm.value
    let report = await prefetch.value
    let second = await fixture.manager.prefetch(Array(urls.dropLast()))

    #expect(report.failed.map(\.url) == [urls[5]] && report.failed.first?.error.status == 404)
    #expect(report.loaded + report.skipped == 5)
    #expect(second.skipped == 5 && second.loaded == 0 && second.failed.isEmpty)
  }

  @Test("a cancelled prefetch stops and reports the resources that it did not load")
  func cancelledPrefetch() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    let urls = try (0..<5).map { try fixture.url("/\($0)") }
    for url in urls { fixture.network.serve(url) { _ in .ok("bytes").held(by: gate) } }

    let prefetch = Task { await fixture.manager.prefetch(urls, concurrency: 1) }
    await gate.arrived()
    prefetch.cancel()
    gate.open()
    let report = await prefetch.value

    #expect(report.loaded == 0 && report.failed.count == 5)
    #expect(report.failed.allSatisfy { $0.error.isCancellation })
  }
}
