import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Responding as an HTTP cache")
struct RespondTests {
  @Test("a response is passed on unchanged and stored, and the next caller gets it with its age", arguments: [true, false])
  func storedAndServed(inMemory: Bool) async throws {
    let fixture = try ManagerFixture { if !inMemory { $0.memory = nil } }
    fixture.network.respond(
      to: fixture.url, with: .ok("an image", etag: "\"1\"", cacheControl: "max-age=60", fields: [.server: "s"]))

    let first = try await fixture.send()
    #expect(first.status == 200 && first.text == "an image" && first.fields[.server] == "s")
    #expect(first.cacheField == "Etagere;fwd=uri-miss;ttl=60;stored")
    #expect(first.fields[.age] == nil)

    fixture.clock.advance(by: .seconds(20))
    let second = try await fixture.send()
    #expect(second.status == 200 && second.text == "an image" && second.fields[.age] == "20")
    #expect(second.cacheField == "Etagere;hit;ttl=40")
    #expect(second.source == (inMemory ? .memory : .disk))
    try fixture.network.verify()
  }

  @Test("a stale response is revalidated, and the 304 does not reach the caller")
  func revalidated() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1"),
      .notModified(etag: "\"1\"", cacheControl: "max-age=60"))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(5))
    let asked = try await fixture.send()
    #expect(asked.status == 200 && asked.text == "old")
    #expect(asked.cache == "Etagere;fwd=stale;fwd-status=304;ttl=60")
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=60")
    #expect(fixture.network.requests.last?.headerFields[.ifNoneMatch] == "\"1\"")
  }

  @Test("the cache satisfies the caller's own condition with 304, and a range with 206 or 416")
  func conditionsAndRanges() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("0123456789", etag: "\"1\"", cacheControl: "max-age=60"))
    _ = try await fixture.send()
    let same = try await fixture.send([.ifNoneMatch: "\"1\""])
    #expect(same.status == 304 && same.text.isEmpty && same.fields[.eTag] == "\"1\"")
    #expect(try await fixture.send([.ifNoneMatch: "\"2\""]).text == "0123456789")
    let part = try await fixture.send([.range: "bytes=2-4"])
    #expect(part.status == 206 && part.text == "234" && part.fields[.contentRange] == "bytes 2-4/10")
    #expect(try await fixture.send([.range: "bytes=20-"]).status == 416)
    fixture.restart()
    #expect(try await fixture.send([.range: "bytes=-3"]).text == "789")
    let head = try await fixture.send([:], .head)
    #expect(head.status == 200 && head.text.isEmpty && head.fields[.eTag] == "\"1\"")
    try fixture.network.verify()
  }

  @Test("every method and status is passed on, and an unsafe method makes the stored response outdated")
  func unsafe() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=60"),
      .response(HTTPResponse.Status(code: 599), body: Data("no".utf8)),
      .response(.noContent), .ok("new", cacheControl: "max-age=60"))
    _ = try await fixture.send()
    let failed = try await fixture.send([:], try #require(HTTPRequest.Method("FROB")), sending: "x")
    #expect(failed.status == 599 && failed.text == "no" && failed.cache == "Etagere;fwd=method")
    #expect(try await fixture.send().text == "old")
    #expect(try await fixture.send([:], .put, sending: "y").status == 204)
    #expect(try await fixture.send().text == "new")
    #expect(fixture.network.requestBodies(for: fixture.url).map { String(decoding: $0, as: UTF8.self) } == ["", "x", "y", ""])
  }

  @Test("a redirect and an error are passed on as responses")
  func redirect() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .redirect(to: "/elsewhere"), .response(.notFound, body: Data("gone".utf8)))
    let redirect = try await fixture.send()
    #expect(redirect.status == 302 && redirect.fields[.location] == "/elsewhere")
    #expect(try await fixture.send().text == "gone")
  }

  @Test("a response that is not read to the end, or is interrupted, is not stored")
  func incomplete() async throws {
    let fixture = try ManagerFixture()
    let text = String(repeating: "x", count: 1_000)
    fixture.network.respond(
      to: fixture.url, with: .ok(text, cacheControl: "max-age=60").chunked(by: 100),
      .ok(text, cacheControl: "max-age=60").cut(after: 300),
      .ok("whole", cacheControl: "max-age=60"))
    let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/image.png")
    do {
      let response = try await fixture.manager.respond(to: request)
      #expect(try await response.body.source.next()?.count == 100)
    }
    #expect(fixture.disk.keys.isEmpty && fixture.memory.count == 0)
    await #expect(throws: CacheError.self) { try await fixture.send() }
    #expect(fixture.disk.keys.isEmpty && fixture.memory.count == 0)
    #expect(try await fixture.send().text == "whole")
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=60")
  }

  @Test("a body that is too large for memory streams through the durable store and replaces the older one in memory")
  func large() async throws {
    let disk = try TemporaryDisk()
    let fixture = try ManagerFixture {
      $0.store = disk.cache
      $0.maximumBodyInMemory = 100
    }
    let text = String(repeating: "y", count: 300_000)
    fixture.network.respond(to: fixture.url, with: .ok("small", cacheControl: "max-age=1"), .ok(text, cacheControl: "max-age=60"))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(2))
    #expect(try await fixture.send().text == text)
    let again = try await fixture.send()
    #expect(again.text == text && again.source == .disk)
    #expect(try await fixture.send([.range: "bytes=299998-"]).text == "yy")
  }

  @Test("a stale response with stale-while-revalidate is served at once and revalidated once")
  func staleWhileRevalidate() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1, stale-while-revalidate=60"),
      .ok("new", etag: "\"2\"", cacheControl: "max-age=60").held(by: gate))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(2))
    for _ in 0..<3 {
      // The background request omits the caller's own conditions and keeps the other fields.
      let shown = try await fixture.send([.ifNoneMatch: "\"0\"", .acceptLanguage: "nl"])
      #expect(shown.text == "old" && shown.cache == "Etagere;hit;ttl=-1")
    }
    await gate.arrived()
    gate.open()
    try await Polling.until { fixture.disk.keys.count == 1 && fixture.network.requests.count == 2 && fixture.isCurrent("\"2\"") }
    #expect(try await fixture.send().text == "new")
    let asked = try #require(fixture.network.requests.last)
    #expect(asked.headerFields[.ifNoneMatch] == "\"1\"" && asked.headerFields[.acceptLanguage] == "nl")
    try fixture.network.verify()
  }

  @Test("closing stops background revalidations, and later requests fail")
  func closing() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", etag: "\"1\"", cacheControl: "max-age=1, stale-while-revalidate=60"),
      .ok("new", etag: "\"2\"", cacheControl: "max-age=60").held(by: gate))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(2))
    #expect(try await fixture.send().text == "old")
    await gate.arrived()
    await fixture.manager.close()
    await #expect(throws: CacheError.self) { try await fixture.send() }
  }

  @Test("if no origin responds, a stored response is served if that is allowed, otherwise the error states why")
  func offline() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=1"), .failure(.connectionLost), .failure(.connectionLost))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(10))
    let shown = try await fixture.send()
    #expect(shown.text == "old" && shown.fields[.age] == "10")
    #expect(shown.cache == "Etagere;fwd=stale;ttl=-9;detail=connectionLost")
    let error = await #expect(throws: CacheError.self) { try await fixture.send([.cacheControl: "no-cache"]) }
    #expect(error?.code == .connectionLost && error?.url == fixture.url.absoluteString)
  }

  @Test(
    "if no origin responds and the stored response must not be served stale, the error states both",
    arguments: [
      ("max-age=1, must-revalidate", CacheMode.private, true), ("no-cache", .private, true), ("s-maxage=1", .shared, true),
      ("max-age=1, proxy-revalidate", .shared, true), ("max-age=1, proxy-revalidate", .private, false),
    ])
  func mustRevalidate(_ rule: String, mode: CacheMode, isForbidden: Bool) async throws {
    let fixture = try ManagerFixture { $0.validator = ETagValidator(mode: mode) }
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: rule), .failure(.connectionRefused, reason: "connection refused"),
      .failure(.malformedResponse))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(10))
    guard isForbidden else { return #expect(try await fixture.send().text == "old") }
    let error = await #expect(throws: CacheError.self) { try await fixture.send() }
    #expect(error?.code == .revalidationFailed && error?.reason.hasSuffix("connection refused") == true)
    #expect((error?.underlying as? CacheError)?.code == .connectionRefused)
    let nonsense = await #expect(throws: CacheError.self) { try await fixture.send() }
    #expect(nonsense?.code == .malformedResponse)
  }

  @Test("stale-if-error serves the stored response in place of a 503, and Cache-Status states that")
  func staleIfError() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("old", cacheControl: "max-age=1, stale-if-error=60"),
      .response(HTTPResponse.Status(code: 503), body: Data("down".utf8)))
    _ = try await fixture.send()
    fixture.clock.advance(by: .seconds(10))
    let shown = try await fixture.send()
    #expect(shown.text == "old" && shown.cache == "Etagere;fwd=stale;fwd-status=503;ttl=-9")
  }

  @Test("Cache-Status states that a response is stored only if a layer has begun to store it", arguments: [true, false])
  func storedTold(isAccepted: Bool) async throws {
    let fixture = try ManagerFixture {
      $0.memory = nil
      $0.maximumBodyInMemory = 10
    }
    fixture.disk.refusesWrites = !isAccepted
    fixture.network.respond(
      to: fixture.url, with: .ok("", cacheControl: "max-age=60"), .ok("an image of large size", cacheControl: "max-age=60"))
    for path in [[:], [.cacheControl: "no-cache"]] as [HTTPFields] {
      let response = try await fixture.send(path)
      #expect(response.cache.hasSuffix(";stored") == isAccepted)
    }
    let memory = try ManagerFixture {
      $0.store = nil
      $0.maximumBodyInMemory = 10
    }
    memory.network.respond(
      to: memory.url, with: .ok("an image of large size", cacheControl: "max-age=60"), .ok("small", cacheControl: "max-age=60"))
    #expect(try await memory.send().cache == "Etagere;fwd=uri-miss;ttl=60")
    #expect(try await memory.send().cache == "Etagere;fwd=uri-miss;ttl=60;stored")
    try memory.network.verify()
  }

  @Test("the response is 504 if nothing is stored and the policy allows no request")
  func onlyIfCached() async throws {
    let fixture = try ManagerFixture()
    let response = try await fixture.send([.cacheControl: "only-if-cached"])
    #expect(response.status == 504)
    #expect(response.cacheField == "Etagere;detail=\"not in the cache, and no request may be sent\"")
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("a soft purge affects a response that is still arriving, even if it is too large for memory")
  func purgedOnTheWay() async throws {
    let disk = try TemporaryDisk()
    let fixture = try ManagerFixture {
      $0.store = disk.cache
      $0.maximumBodyInMemory = 100
    }
    let text = String(repeating: "y", count: 300_000)
    fixture.network.respond(
      to: fixture.url, with: .ok(text, etag: "\"1\"", cacheControl: "max-age=60"), .notModified(etag: "\"1\""))
    let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/image.png")
    let response = try await fixture.manager.respond(to: request)
    _ = try await response.body.source.next()
    try await fixture.manager.purge(.url(fixture.url), .soft)
    while try await response.body.source.next() != nil {}
    #expect(try await fixture.send().cache.contains("fwd=") == true)
    #expect(fixture.network.requests.count == 2)
  }

  @Test(
    "a body that the store has already loaded is promoted to memory only within the limit for streams", arguments: [100, 300_000])
  func memoryLimit(_ limit: Int64) async throws {
    let disk = try TemporaryDisk()
    let fixture = try ManagerFixture {
      $0.store = disk.cache
      $0.maximumBodyInMemory = limit
    }
    fixture.network.respond(to: fixture.url, with: .ok(String(repeating: "y", count: 20_000), cacheControl: "max-age=60"))
    _ = try await fixture.send()
    fixture.restart()
    for _ in 1...2 { #expect(try await fixture.send().text.count == 20_000) }
    #expect(try await fixture.send().source == (limit < 20_000 ? .disk : .memory))
    try fixture.network.verify()
  }

  @Test("an older response that is read slowly does not replace a later one")
  func slowReader() async throws {
    let fixture = try ManagerFixture()
    let text = String(repeating: "1", count: 200)
    fixture.network.respond(
      to: fixture.url, with: .ok(text, cacheControl: "max-age=600").chunked(by: 100), .ok("later", cacheControl: "max-age=600"))
    let request = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/image.png")
    let slow = try await fixture.manager.respond(to: request)
    _ = try await slow.body.source.next()
    fixture.clock.advance(by: .seconds(5))
    #expect(try await fixture.send([.cacheControl: "no-cache"]).text == "later")
    while try await slow.body.source.next() != nil {}
    #expect(try await fixture.send().text == "later")
    fixture.restart()
    #expect(try await fixture.send().text == "later")
  }

  @Test("cacheOnly sends no request, even without a validator")
  func cacheOnly() async throws {
    let fixture = try ManagerFixture { $0.validator = nil }
    let only = RequestOptions.policy(.cacheOnly)
    #expect(try await fixture.send(options: only).status == 504)
    #expect(try await fixture.send([:], .post, sending: "x", options: only).status == 504)
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("a shared cache stores a part, serves from it, and requests only the rest")
  func parts() async throws {
    let fixture = try ManagerFixture { $0.validator = ETagValidator(mode: .shared, parts: .completed) }
    let part: HTTPFields = [.contentRange: "bytes 0-4/10", .eTag: "\"1\"", .cacheControl: "max-age=60"]
    let rest: HTTPFields = [.contentRange: "bytes 5-9/10", .eTag: "\"1\"", .cacheControl: "max-age=60"]
    fixture.network.respond(
      to: fixture.url, with: .response(.partialContent, fields: part, body: Data("01234".utf8)),
      .response(.partialContent, fields: rest, body: Data("56789".utf8)))
    #expect(try await fixture.send([.range: "bytes=0-4"]).text == "01234")
    let inside = try await fixture.send([.range: "bytes=1-2"])
    #expect(inside.status == 206 && inside.text == "12" && inside.cache.hasPrefix("Etagere;hit"))
    let whole = try await fixture.send()
    #expect(whole.status == 200 && whole.text == "0123456789")
    #expect(whole.cache == "Etagere;fwd=partial;fwd-status=206;ttl=60;stored")
    #expect(fixture.network.requests.last?.headerFields[.range] == "bytes=5-9")
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=60")
    try fixture.network.verify()
  }

  @Test("partitions do not share responses")
  func partitions() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("a", cacheControl: "max-age=60"), .ok("b", cacheControl: "max-age=60"))
    let (a, b) = (RequestOptions { $0.partition = "a" }, RequestOptions { $0.partition = "b" })
    #expect(try await fixture.send(options: a).text == "a")
    #expect(try await fixture.send(options: b).text == "b")
    #expect(try await fixture.send(options: a).text == "a")
    try fixture.network.verify()
  }

  @Test("a request without an absolute target is refused", arguments: ["", "relative"])
  func target(path: String) async throws {
    let fixture = try ManagerFixture()
    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.respond(to: HTTPRequest(method: .get, scheme: nil, authority: nil, path: path))
    }
    #expect(error?.code == .invalidURL)
  }

  @Test(
    "a target is sent unchanged, plain or not, and its response is found again",
    arguments: ["/a", "/a%20b", "/it's", "/a?b=c&d=%2F", "/a/../b;c=~_-.,@:!$*+"])
  func targets(path: String) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: try #require(URL(string: "https://example.com\(path)")), with: .ok("one", cacheControl: "max-age=60"))
    #expect(try await fixture.send(path: path).text == "one")
    #expect(fixture.network.requests.map(\.path) == [path])
    #expect(try await fixture.send(path: path).cache == "Etagere;hit;ttl=60")
  }

  @Test("an invalid host or port is refused", arguments: ["", "example.com:0", "example.com:65536"])
  func authority(text: String) async throws {
    let fixture = try ManagerFixture()
    let error = await #expect(throws: CacheError.self) {
      try await fixture.manager.respond(to: HTTPRequest(method: .get, scheme: "https", authority: text, path: "/a"))
    }
    #expect(error?.code == .invalidURL)
    #expect(fixture.network.requests.isEmpty)
  }

  @Test("loads and HTTP requests use each other's stored responses")
  func sharedWithLoads() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("one", cacheControl: "max-age=60"))
    #expect(try await fixture.manager.load(fixture.url).text == "one")
    #expect(try await fixture.send().cache == "Etagere;hit;ttl=60")
    fixture.restart()
    #expect(try await fixture.send().text == "one")
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
  }
}

extension ManagerFixture {
  /// Whether the cache has a response with this tag.
  fileprivate func isCurrent(_ tag: String) -> Bool {
    let request = ResourceRequest(url, options: RequestOptions { $0.policy = .cacheOnly })
    return manager.cachedInMemory(request, as: .bytes)?.response.headerFields[.eTag] == tag
  }
}
