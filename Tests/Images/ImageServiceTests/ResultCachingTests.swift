#if Service
import CacheTesting
import Foundation
import HTTPTypes
import ImageService
import MemoryStore
import Testing

@Suite("Results as cached responses")
struct ResultCachingTests {
  private let fixture: ServiceFixture

  init() throws { fixture = try ServiceFixture() }

  @Test("the second request gets the result from memory, and the origin gets none")
  func hit() async throws {
    try fixture.serve(try DrawnImage.png(40, 30))
    let first = try await fixture.get("width=20")
    let second = try await fixture.get("width=20")
    #expect(first.response.servedFrom == .network)
    #expect(second.response.servedFrom == .memory)
    #expect(first.data == second.data)
    #expect(first.fields[.eTag] == second.fields[.eTag])
    #expect(try fixture.requests().count == 1)
  }

  @Test("results of one source need one request to the origin")
  func oneSource() async throws {
    try fixture.serve(try DrawnImage.png(40, 30))
    for width in 1...8 { #expect(try await fixture.get("width=\(width)").status == 200) }
    #expect(try fixture.requests().count == 1)
  }

  @Test("requests at the same time need one request to the origin")
  func coalescing() async throws {
    try fixture.serve(try DrawnImage.png(40, 30))
    try await withThrowingTaskGroup(of: Int.self) { group in
      for index in 0..<40 { group.addTask { try await fixture.get("width=\(index % 4 + 1)").status } }
      for try await status in group { #expect(status == 200) }
    }
    #expect(try fixture.requests().count == 1)
  }

  @Test("the response has the lifetime, the tags and the age of its source")
  func freshness() async throws {
    let tag = try #require(HTTPField.Name("Cache-Tag"))
    try fixture.serve(
      try DrawnImage.png(40, 30), cacheControl: "public, max-age=60, stale-while-revalidate=30", [tag: "cats", .age: "10"])
    let served = try await fixture.get("width=20")
    #expect(served.fields[.cacheControl] == "public, max-age=60, stale-while-revalidate=30")
    #expect(served.fields[tag] == "cats")
    #expect(served.fields[.age] == "10")
    fixture.clock.advance(by: .seconds(20))
    #expect(try await fixture.get("width=20").fields[.age] == "30")
    // A result that is made later has the age of its source, too.
    #expect(try await fixture.get("width=21").fields[.age] == "30")
  }

  @Test("a result whose source is confirmed by a 304 is not made again")
  func confirmation() async throws {
    try fixture.serve(try DrawnImage.png(40, 30))
    let first = try await fixture.get("width=20")
    fixture.clock.advance(by: .seconds(90))
    let second = try await fixture.get("width=20")
    #expect(second.response.servedFrom != .network)
    #expect(second.data == first.data)
    #expect(try fixture.requests().map { $0.headerFields[.ifNoneMatch] } == [nil, "\"1\""])
    #expect(try await fixture.get("width=20").fields[.age] == "0")
  }

  @Test("a new source at the same URL makes a new result")
  func replacement() async throws {
    try fixture.serve(try DrawnImage.png(40, 30, red: 1))
    let first = try await fixture.get("width=20")
    try fixture.serve(try DrawnImage.png(40, 30, red: 250), etag: "\"2\"")
    fixture.clock.advance(by: .seconds(90))
    let second = try await fixture.get("width=20")
    #expect(second.data != first.data)
    #expect(second.fields[.eTag] != first.fields[.eTag])
  }

  @Test("a client that has the result gets 304, also if the service does not have it")
  func conditions() async throws {
    try fixture.serve(try DrawnImage.png(40, 30))
    let tag = try #require(try await fixture.get("width=20").fields[.eTag])
    let confirmed = try await fixture.get("width=20", [.ifNoneMatch: tag])
    #expect(confirmed.status == 304)
    #expect(confirmed.data.isEmpty)
    let other = try ServiceFixture()
    try other.serve(try DrawnImage.png(40, 30))
    #expect(try await other.get("width=20", [.ifNoneMatch: tag]).status == 304)
    #expect(try await other.get("width=21", [.ifNoneMatch: tag]).status == 200)
  }

  @Test("a range of a result is a partial response")
  func range() async throws {
    try fixture.serve(try DrawnImage.png(40, 30))
    let whole = try await fixture.get("width=20")
    let part = try await fixture.get("width=20", [.range: "bytes=2-5"])
    #expect(part.status == 206)
    #expect(part.data == whole.data[2...5])
    #expect(try await fixture.get("width=20", [.range: "bytes=999999-"]).status == 416)
  }

  @Test("a response to HEAD has the fields of GET and no body, and the result is stored")
  func head() async throws {
    try fixture.serve(try DrawnImage.png(40, 30))
    let head = try await fixture.get("width=20", method: .head)
    let get = try await fixture.get("width=20")
    #expect(head.status == 200)
    #expect(head.data.isEmpty)
    #expect(head.fields[.contentLength] == "\(get.data.count)")
    #expect(get.response.servedFrom == .memory)
  }

  @Test("a client cannot force the service to load a source again", arguments: ["no-cache", "max-age=0", "no-store"])
  func reload(_ cacheControl: String) async throws {
    try fixture.serve(try DrawnImage.png(40, 30))
    _ = try await fixture.get("width=20")
    let pragma = try #require(HTTPField.Name("Pragma"))
    _ = try await fixture.get("width=20", [.cacheControl: cacheControl, pragma: "no-cache"])
    #expect(try fixture.requests().count == 1)
  }

  @Test("a stale result is served while the origin fails, as stale-if-error allows", arguments: [true, false])
  func staleIfError(_ hasStore: Bool) async throws {
    let fixture = try ServiceFixture { if !hasStore { $0.cache.store = nil } }
    try fixture.serve(try DrawnImage.png(40, 30), cacheControl: "max-age=60, stale-if-error=600")
    let first = try await fixture.get("width=20")
    fixture.network.serve(try #require(URL(string: ServiceFixture.image))) { _ in .response(.init(code: 500)) }
    fixture.clock.advance(by: .seconds(90))
    let second = try await fixture.get("width=20")
    #expect(second.status == 200)
    #expect(second.data == first.data)
  }

  @Test(
    "the lifetime of a response is at most that of its URL, and its restrictions remain",
    arguments: [
      ("max-age=31536000, immutable", "max-age=60, must-revalidate"), ("public, s-maxage=30", "max-age=30, must-revalidate"),
      ("No-Cache, max-age=90", "No-Cache, max-age=90"), ("no-store", "no-store"),
      ("private=\"set-cookie\", max-age=90", "private, max-age=60, must-revalidate"),
      ("max-age=90, no-transform", "no-transform, max-age=60, must-revalidate"),
    ])
  func expiry(_ cacheControl: String, _ expected: String) async throws {
    try fixture.serve(try DrawnImage.png(40, 30), cacheControl: cacheControl)
    let expiry = Timestamp(seconds: fixture.clock.now.seconds + 60)
    // The clock stands still, and its fraction of a second is left out of the expiry.
    let field = try await fixture.get("width=20", expiresAt: expiry).fields[.cacheControl]
    #expect(field == expected || field == expected.replacing("=60", with: "=59"))
    #expect(try await fixture.get("width=20").fields[.cacheControl] == cacheControl)
  }

  @Test("the entity tag is weak, and a client's list of tags is compared weakly")
  func weakTag() async throws {
    try fixture.serve(try DrawnImage.png(40, 30))
    let tag = try #require(try await fixture.get("width=20").fields[.eTag])
    #expect(tag.hasPrefix("W/"))
    let other = try ServiceFixture()
    try other.serve(try DrawnImage.png(40, 30))
    #expect(try await other.get("width=20", [.ifNoneMatch: "\"a\", \(tag)"]).status == 304)
  }

  @Test("the result of a source with no-transform is the source itself (RFC 9111 §5.2.2.6)")
  func noTransform() async throws {
    let source = try DrawnImage.png(40, 30)
    try fixture.serve(source, cacheControl: "max-age=60, no-transform")
    for operations in ["width=20", "format=jpeg,gray"] {
      let result = try await fixture.get(operations)
      #expect(result.status == 200 && result.data == source)
      #expect(result.fields[.contentType] == "image/png" && result.fields[.contentLength] == "\(source.count)")
      #expect(result.fields[.cacheControl] == "max-age=60, no-transform")
    }
    #expect(try await fixture.get("width=20").response.servedFrom == .memory)
  }

  @Test("a source that adds or removes no-transform has another result, although its bytes and its tag are the same")
  func noTransformChanges() async throws {
    let source = try DrawnImage.png(40, 30)
    try fixture.serve(source)
    #expect(try await fixture.get("width=20").header.size == PixelSize(20, 15))
    try fixture.serve(source, cacheControl: "max-age=60, no-transform")
    fixture.clock.advance(by: .seconds(61))
    #expect(try await fixture.get("width=20").data == source)
    try fixture.serve(source)
    fixture.clock.advance(by: .seconds(61))
    #expect(try await fixture.get("width=20").header.size == PixelSize(20, 15))
  }

  @Test("a source with no-transform that is not an image is refused")
  func noTransformOfText() async throws {
    try fixture.serve(Data("<p>text</p>".utf8), cacheControl: "max-age=60, no-transform")
    #expect(try await fixture.get("width=20").problem == "notAnImage")
  }

  @Test("a purge by tag removes the source and its results")
  func purgeByTag() async throws {
    let tag = try #require(HTTPField.Name("Cache-Tag"))
    try fixture.serve(try DrawnImage.png(40, 30), [tag: "cats"])
    _ = try await fixture.get("width=20")
    _ = try await fixture.get("width=21")
    #expect(try await fixture.service.manager.purge(.tag("cats"), in: .all) == 3)
    _ = try await fixture.get("width=20")
    #expect(try fixture.requests().count == 2)
  }

  @Test("a purge of a source removes its results, and no others")
  func purgeOfSource() async throws {
    let other = "https://photos.example.com/dog.png"
    try fixture.serve(try DrawnImage.png(40, 30))
    try fixture.serve(try DrawnImage.png(40, 30), at: other)
    _ = try await fixture.get("width=20")
    _ = try await fixture.get("width=20", of: other)
    #expect(try await fixture.service.purge(source: ServiceFixture.image) == 2)
    #expect(try await fixture.get("width=20").response.servedFrom == .network)
    #expect(try await fixture.get("width=20", of: other).response.servedFrom == .memory)
  }

  @Test("the original is returned byte for byte, and cannot run scripts")
  func original() async throws {
    let drawing = Data(#"<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"><script>alert(1)</script></svg>"#.utf8)
    try fixture.serve(drawing)
    let served = try await fixture.get("original")
    #expect(served.data == drawing)
    #expect(served.fields[.contentType] == "image/svg+xml")
    #expect(try served.fields[#require(HTTPField.Name("Content-Security-Policy"))] == "default-src 'none'; sandbox")
    #expect(served.fields[.eTag] == "\"1\"")
    #expect(try await fixture.get("original").response.servedFrom == .disk)
    #expect(try await fixture.get("original", [.ifNoneMatch: "\"1\""]).status == 304)
    let part = try await fixture.get("original", [.range: "bytes=5-9"])
    #expect(part.status == 206 && part.data == drawing[5...9])
    let head = try await fixture.get("original", method: .head)
    #expect(head.data.isEmpty && head.fields[.contentLength] == "\(drawing.count)")
    #expect(head.fields[.contentType] == "image/svg+xml")
    #expect(fixture.store.keys.count == 1)
  }

  @Test("results survive a restart on disk, and the originals are not in memory")
  func layers() async throws {
    let memory = MemoryCache(limits: .init(cost: 16 << 20), clock: fixture.clock)
    let first = try ServiceFixture { $0.cache.memory = memory }
    let source = try DrawnImage.png(400, 300)
    try first.serve(source)
    let served = try await first.get("width=20")
    #expect(memory.totalCost < source.count)
    let second = try ServiceFixture { $0.cache.store = first.store }
    let again = try await second.get("width=20")
    #expect(again.data == served.data)
    #expect(again.response.servedFrom == .disk)
  }
}
#endif
