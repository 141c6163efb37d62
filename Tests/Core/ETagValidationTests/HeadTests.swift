import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("HEAD requests and storable POST responses")
struct HeadTests {
  private func cache(_ lines: String..., after seconds: Int64 = 0) -> CacheFixture {
    var cache = CacheFixture()
    cache.length = 100
    _ = cache.load { _ in .success(HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines))) }
    cache.advance(seconds)
    cache.sent = []
    return cache
  }

  @Test("HEAD is served from a fresh GET, without the body")
  func fromGet() {
    var cache = cache("ETag: \"a\"", "Cache-Control: max-age=60", "Content-Length: 100", after: 9)
    let outcome = cache.load(.page(.head, "Range: bytes=0-1")) { _ in .success(.head(500)) }
    #expect(outcome.source == .cache)
    #expect(outcome.reply?.content == StoredReply.Content.none)
    #expect(outcome.reply?.head.status == .ok)
    #expect(outcome.reply?.head.headerFields[.contentLength] == "100")
    #expect(outcome.reply?.head.headerFields[.age] == "9")
    #expect(cache.load(.page(.head, "If-None-Match: \"a\"")) { _ in .success(.head(500)) }.reply?.head.status == .notModified)
  }

  @Test("HEAD revalidates a stale GET, and its 304 updates it")
  func confirmed() {
    var cache = cache("ETag: \"a\"", "Cache-Control: max-age=60", after: 90)
    let outcome = cache.load(.page(.head)) { head in
      #expect(head.headerFields[.ifNoneMatch] == "\"a\"")
      return .success(.head(304))
    }
    #expect(outcome.source == .revalidated)
    #expect(outcome.reply?.content == StoredReply.Content.none)
    #expect(cache.load { _ in .success(.head(500)) }.source == .cache)
  }

  @Test(
    "a 200 to HEAD updates a stored GET that matches, and makes any other stale",
    arguments: [
      (["ETag: \"a\""], true), (["ETag: W/\"a\""], true), (["ETag: \"b\""], false), (["Content-Length: 100"], true),
      (["Content-Length: 99"], false), (["Last-Modified: \(date(-9))"], true), (["Last-Modified: \(date(-8))"], false),
      ([], true),
    ] as [([String], Bool)])
  func news(lines: [String], fits: Bool) {
    var cache = cache(
      "ETag: \"a\"", "Last-Modified: \(date(-9))", "Content-Length: 100", "Cache-Control: max-age=60", "X-A: 1", after: 10)
    let before = cache.stored[0]
    let outcome = cache.load(.page(.head, "Cache-Control: no-cache")) { _ in
      .success(HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines + ["X-A: 2", "Cache-Control: max-age=90"])))
    }
    #expect(outcome.source == .network)
    let after = cache.stored[0]
    #expect(after.revision == before.revision)
    #expect(after.freshness.isFresh(at: cache.now) == fits)
    #expect(after.response.headerFields[text: "X-A"] == (fits ? "2" : "1"))
    #expect(after.response.headerFields[.contentLength] == "100")
  }

  @Test("an error response to HEAD, or one that forbids storing, changes nothing")
  func noNews() {
    for response in [HTTPResponse.head(404, "ETag: \"b\""), .head(500), .ok("ETag: \"b\"", "Cache-Control: no-store")] {
      var cache = cache("ETag: \"a\"", "Cache-Control: max-age=60")
      let before = cache.stored
      _ = cache.load(.page(.head, "Cache-Control: no-cache")) { _ in .success(response) }
      #expect(cache.stored == before)
      #expect(cache.invalidated.isEmpty)
    }
  }

  @Test("a POST response that represents its target serves later GETs")
  func post() {
    var cache = cache("ETag: \"a\"", "Cache-Control: max-age=60")
    let outcome = cache.load(.page(.post)) { _ in
      .success(.ok("Cache-Control: max-age=60", "Content-Location: https://EXAMPLE.com/page", "Location: /other", "X-New: 1"))
    }
    #expect(outcome.source == .network)
    #expect(cache.entries.count == 1)
    #expect(cache.stored[0].request.method == .get)
    #expect(cache.invalidated == ["https://example.com/other"])
    #expect(cache.load { _ in .success(.head(500)) }.response?.headerFields[text: "X-New"] == "1")
    #expect(cache.load(.page(.post)) { _ in .success(.ok()) }.source == .network)
  }

  @Test(
    "any other POST response is not stored",
    arguments: [
      (200, ["Cache-Control: max-age=60"]), (200, ["Content-Location: /page"]),
      (200, ["Cache-Control: max-age=60", "Content-Location: /b"]),
      (201, ["Cache-Control: max-age=60", "Content-Location: /page"]),
      (200, ["Cache-Control: max-age=0", "Content-Location: /page"]),
      (200, ["Cache-Control: no-store, max-age=60", "Content-Location: /page"]),
    ] as [(Int, [String])])
  func otherPost(status: Int, lines: [String]) {
    var cache = CacheFixture()
    _ = cache.load(.page(.post)) { _ in
      .success(HTTPResponse(status: .init(code: status), headerFields: HTTPFields(lines: lines)))
    }
    #expect(cache.entries.isEmpty)
    #expect(cache.invalidated.first == "https://example.com/page")
  }
}
