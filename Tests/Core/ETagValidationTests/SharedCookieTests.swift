import CacheCore
import ETagValidation
import HTTPTypes
import Testing

/// RFC 9111 §7.3 leaves the storing of responses with cookies to the cache.
@Suite("Cookies in a shared cache")
struct SharedCookieTests {
  private static let modified = "Last-Modified: \(date(-864_000))"

  private func cache(_ mode: CacheMode = .shared, ignoresCookies: Bool = false) -> CacheFixture {
    var cache = CacheFixture()
    cache.validator = ETagValidator(
      mode: mode, defaultLifetime: .seconds(99), ignoresCookies: ignoresCookies, digestSecret: DigestSecret(high: 1, low: 2))
    return cache
  }

  @Test(
    "a response with Set-Cookie, or to a request with Cookie, is stored only with public or with a lifetime",
    arguments: [
      ("X-A: 1", false), ("Cache-Control: max-age=60", true), ("Cache-Control: s-maxage=60", true),
      ("Cache-Control: public", true),
      ("Expires: \(date(60))", true), ("CDN-Cache-Control: max-age=60", true), ("Cache-Control: max-age=0", false),
      ("Cache-Control: s-maxage=0, max-age=60", false), ("Expires: 0", false), ("Expires: \(date(-60))", false),
      ("Cache-Control: immutable", false),
      ("Cache-Control: must-revalidate", false), ("Cache-Control: no-cache", false),
      ("Cache-Control: max-age=60, no-cache", false),
      ("Cache-Control: no-cache=\"set-cookie\"", false), ("Cache-Control: max-age=60, no-cache=\"set-cookie\"", true),
      ("Cache-Control: stale-while-revalidate=60", false), ("CDN-Cache-Control: must-revalidate", false),
      ("Pragma: public", false),
    ])
  func storing(line: String, isStored: Bool) {
    for (asked, answered) in [
      ("X-B: 1", "Set-Cookie: session=alice"), ("Cookie: session=alice", "X-B: 1"), ("Cookie: a", "Set-Cookie: b"),
    ] {
      var shared = cache()
      _ = shared.load(.page(.get, asked)) { _ in .success(.ok(Self.modified, "ETag: \"a\"", line, answered)) }
      #expect(shared.entries.count == (isStored ? 1 : 0))
      #expect(shared.shareable == (isStored ? [] : [false]))
      // The setting and the private mode store all of them.
      for mode in CacheMode.allCases {
        var other = cache(mode, ignoresCookies: mode == .shared)
        _ = other.load(.page(.get, asked)) { _ in .success(.ok(Self.modified, "ETag: \"a\"", line, answered)) }
        #expect(other.entries.count == 1)
      }
    }
  }

  @Test("a response that is not stored anyway is not shared either", arguments: [302, 404, 503])
  func sharing(status: Int) {
    for (fields, isShared) in [("X-B: 1", true), ("Set-Cookie: a", false)] {
      var cache = CacheFixture()
      cache.validator = ETagValidator(mode: .shared, heuristics: nil)
      _ = cache.load { _ in .success(.head(status, fields)) }
      _ = cache.load(.page(.get, "Cookie: a")) { _ in .success(.head(status, fields)) }
      #expect(cache.entries.isEmpty && cache.shareable == [isShared, false])
    }
  }

  @Test("a stored response without cookies serves requests with and without them")
  func served() {
    var cache = cache()
    _ = cache.load { _ in .success(.ok(Self.modified)) }
    #expect(cache.load(.page(.get, "Cookie: a")) { _ in .success(.head(500)) }.source == .cache)
  }

  @Test("a 304 or a HEAD for one session confirms the response, but none of its fields are stored")
  func confirmed() {
    for line in ["Cookie: session=alice", "X-A: 1"] {
      var cache = cache()
      _ = cache.load { _ in .success(.ok("ETag: \"x\"", "Cache-Control: max-age=60")) }
      cache.advance(120)
      let outcome = cache.load(.page(.get, line)) { _ in
        .success(.head(304, "ETag: \"x\"", "Set-Cookie: session=alice", "X-User: alice"))
      }
      #expect(outcome.source == .revalidated)
      _ = cache.load(.page(.head, line)) { _ in .success(.ok("ETag: \"x\"", "Set-Cookie: session=alice", "X-User: alice")) }
      #expect(cache.stored[0].response.headerFields[text: "Set-Cookie"] == nil)
      #expect(cache.stored[0].response.headerFields[text: "X-User"] == nil)
      #expect(cache.load { _ in .success(.ok()) }.source == .network)
    }
  }

  @Test(
    "a 304 without Set-Cookie has the permission that the stored response states",
    arguments: [
      ("Cache-Control: max-age=60", "X-A: 1", true), ("Cache-Control: public, max-age=60", "X-A: 1", true),
      ("Cache-Control: max-age=60", "Cache-Control: no-cache", false), ("Cache-Control: max-age=60", "Set-Cookie: a", false),
      ("Cache-Control: public, max-age=60", "Set-Cookie: a", false),
    ])
  func confirmedLifetime(stored: String, line: String, isFresh: Bool) {
    var cache = cache()
    _ = cache.load { _ in .success(.ok("ETag: \"x\"", stored)) }
    cache.advance(120)
    #expect(cache.load(.page(.get, "Cookie: a")) { _ in .success(.head(304, "ETag: \"x\"", line)) }.source == .revalidated)
    #expect(cache.load { _ in .success(.ok()) }.source == (isFresh ? .cache : .network))
  }

  @Test("a 304 that states a lifetime updates the response, although the request had a cookie")
  func updated() {
    var cache = cache()
    _ = cache.load { _ in .success(.ok("ETag: \"x\"", "Cache-Control: max-age=60")) }
    cache.advance(120)
    _ = cache.load(.page(.get, "Cookie: a")) { _ in .success(.head(304, "ETag: \"x\"", "Cache-Control: max-age=60")) }
    #expect(cache.load { _ in .success(.head(500)) }.source == .cache)
  }

  @Test("a 304 to the caller's own condition is not shared if it belongs to a session")
  func ownCondition() {
    var cache = cache()
    _ = cache.load(.page(.get, "If-None-Match: \"a\"", "Cookie: a")) { _ in .success(.head(304)) }
    _ = cache.load(.page(.get, "If-None-Match: \"a\"")) { _ in .success(.head(304)) }
    #expect(cache.shareable == [false, true])
  }

  @Test("validators that treat cookies differently have different identities")
  func identity() {
    let secret = DigestSecret(high: 1, low: 2)
    let ignoring = ETagValidator(mode: .shared, ignoresCookies: true, digestSecret: secret)
    #expect(ignoring.ignoresCookies && ignoring.id != ETagValidator(mode: .shared, digestSecret: secret).id)
  }
}
