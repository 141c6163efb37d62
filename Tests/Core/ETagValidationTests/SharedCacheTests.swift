import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("A shared cache")
struct SharedCacheTests {
  private static func cache(_ mode: CacheMode = .shared) -> CacheFixture {
    var cache = CacheFixture()
    cache.validator = ETagValidator(mode: mode, digestSecret: DigestSecret(high: 1, low: 2))
    return cache
  }

  private func freshness(_ lines: String..., mode: CacheMode = .shared) -> Freshness {
    ETagValidator(mode: mode, heuristics: nil).freshness(
      of: HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines)), requestTime: CacheFixture.start,
      responseTime: CacheFixture.start)
  }

  @Test(
    "s-maxage overrides max-age and Expires in a shared cache only",
    arguments: [
      ("s-maxage=90, max-age=60", 90, 60), ("max-age=60, s-maxage=0", 0, 60), ("s-maxage=90", 90, 0), ("max-age=60", 60, 60),
      ("s-maxage=x, max-age=60", 0, 60), ("s-maxage=\"90\"", 90, 0),
    ] as [(String, Int64, Int64)])
  func lifetime(line: String, shared: Int64, own: Int64) {
    let fields = ["Cache-Control: \(line)", "Expires: junk"]
    #expect(freshness(fields[0], fields[1]).freshUntil == CacheFixture.start + .seconds(shared))
    #expect(freshness(fields[0], fields[1], mode: .private).freshUntil == CacheFixture.start + .seconds(own))
  }

  @Test(
    "proxy-revalidate and s-maxage forbid stale responses in a shared cache only",
    arguments: ["proxy-revalidate, max-age=5", "s-maxage=5"])
  func neverStale(line: String) {
    let fields = "Cache-Control: \(line), stale-while-revalidate=30"
    #expect(freshness(fields).staleIfErrorUntil == nil)
    #expect(freshness(fields).staleWhileRevalidateUntil == nil)
    #expect(freshness(fields, mode: .private).staleIfErrorUntil == .distantFuture)
    #expect(freshness(fields, mode: .private).staleWhileRevalidateUntil != nil)
  }

  @Test("a confirmed response to a user's credentials is not shared unless it says so", arguments: [false, true])
  func confirmedForOne(isForAll: Bool) {
    var cache = Self.cache()
    _ = cache.load { _ in .success(.ok("Cache-Control: max-age=60", "ETag: \"x\"")) }
    cache.advance(120)
    let outcome = cache.load(.page(.get, "Authorization: alice")) { _ in
      .success(
        .head(304, "ETag: \"x\"", "Cache-Control: max-age=60\(isForAll ? ", public" : "")", "Set-Cookie: sid=alice"))
    }
    #expect(outcome.source == .revalidated)
    #expect((cache.stored[0].response.headerFields[text: "Set-Cookie"] != nil) == isForAll)
    #expect(cache.load { _ in .success(.head(500)) }.source == (isForAll ? .cache : .network))
  }

  @Test(
    "a private response is stored in a private cache, but not in a shared one",
    arguments: [
      ("private, max-age=60", false), ("private=\"x-a\", max-age=60", true), ("private=x-a, max-age=60", false),
      ("private=\"vary\", max-age=60", false), ("max-age=60", true), ("PRIVATE", false),
    ] as [(String, Bool)])
  func `private`(line: String, isStored: Bool) {
    for mode in CacheMode.allCases {
      var cache = Self.cache(mode)
      _ = cache.load { _ in .success(.ok("Cache-Control: \(line)", "X-A: 1", "ETag: \"a\"")) }
      #expect(cache.entries.count == (isStored || mode == .private ? 1 : 0))
      #expect(cache.shareable == (isStored || mode == .private ? [] : [false]))
    }
  }

  @Test("fields that private or no-cache list are not stored, even if a 304 has them")
  func leftOut() {
    for (mode, kept) in [(CacheMode.shared, [false, false]), (.private, [true, false])] {
      var cache = Self.cache(mode)
      let line = "Cache-Control: private=\"X-A\", no-cache=\"X-B\", max-age=5"
      _ = cache.load { _ in .success(.ok(line, "X-A: 1", "X-B: 1", "X-C: 1", "ETag: \"a\"")) }
      func check() {
        let fields = cache.stored[0].response.headerFields
        #expect([fields[text: "X-A"] != nil, fields[text: "X-B"] != nil] == kept)
        #expect(fields[text: "X-C"] == "1")
      }
      check()
      #expect(cache.load { _ in .success(.head(500)) }.source == .cache)
      cache.advance(10)
      #expect(cache.load { _ in .success(.head(304, line, "X-A: 2", "X-B: 2")) }.source == .revalidated)
      check()
    }
  }

  @Test(
    "a response to a request with Authorization is stored if the origin permits sharing",
    arguments: [
      ("max-age=60", false), ("max-age=60, public", true), ("max-age=60, must-revalidate", true), ("s-maxage=60", true),
      ("max-age=60, proxy-revalidate", false), ("no-cache", false), ("public", true),
    ] as [(String, Bool)])
  func authorized(line: String, isStored: Bool) {
    var cache = Self.cache()
    _ = cache.load(.page(.get, "Authorization: a")) { _ in .success(.ok("Cache-Control: \(line)", "ETag: \"a\"")) }
    #expect(cache.entries.map(\.variant) == (isStored ? [""] : []))
    guard isStored, line != "public" else { return }
    #expect(cache.load(.page(.get, "Authorization: b")) { _ in .success(.head(500)) }.source == .cache)
    #expect(cache.load { _ in .success(.head(500)) }.source == .cache)
  }

  @Test("Authorization selects only if Vary lists it, and a private cache's response for a user is not served")
  func credentials() {
    var cache = Self.cache()
    _ = cache.load { _ in .success(.ok("Cache-Control: max-age=60, public", "Vary: Authorization")) }
    #expect(cache.load(.page(.get, "Authorization: a")) { _ in .success(.ok()) }.source == .network)
    cache = Self.cache(.private)
    _ = cache.load(.page(.get, "Authorization: a")) { _ in .success(.ok("Cache-Control: max-age=60")) }
    cache.validator = ETagValidator(mode: .shared, digestSecret: DigestSecret(high: 1, low: 2))
    for line in ["Authorization: a", "X: 1"] {
      #expect(cache.load(.page(.get, line)) { _ in .success(.head(500)) }.source == .network)
    }
  }

  @Test(
    "a valid targeted field takes precedence, and an invalid one is ignored",
    arguments: [
      ("max-age=90", 90), ("max-age=90, x=1;y", 90), ("s-maxage=5, max-age=90", 5), ("max-age=1, max-age=90", 90), ("x", 0),
      // Not a dictionary, so Cache-Control applies.
      ("", 60), ("Max-Age=90", 60), ("max-age=90,", 60), ("max-age 90", 60), ("max-age=9e", 60), ("max-age=(1", 60), ("é", 60),
      // A value of the wrong type is ignored.
      ("max-age=\"90\"", 0), ("max-age=90.0", 0), ("max-age", 0), ("max-age=?1", 0), ("max-age=-5", 0), ("max-age=(90)", 0),
      ("max-age=999999999999999", 2_147_483_648),
    ] as [(String, Int64)])
  func targeted(line: String, seconds: Int64) {
    let fields = ["CDN-Cache-Control: \(line)", "Cache-Control: max-age=60", "Expires: \(date(77))"]
    #expect(freshness(fields[0], fields[1], fields[2]).freshUntil == CacheFixture.start + .seconds(seconds))
    #expect(freshness(fields[0], fields[1], fields[2], mode: .private).freshUntil == CacheFixture.start + .seconds(60))
  }

  @Test("the flags of a targeted field apply, and those of Cache-Control do not")
  func targetedFlags() {
    func isStored(_ lines: String...) -> Bool {
      var cache = Self.cache()
      _ = cache.load { _ in .success(HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines))) }
      return !cache.entries.isEmpty
    }
    #expect(isStored("CDN-Cache-Control: max-age=9", "Cache-Control: no-store, private"))
    #expect(!isStored("CDN-Cache-Control: no-store", "Cache-Control: max-age=9"))
    #expect(!isStored("CDN-Cache-Control: private", "Cache-Control: max-age=9"))
    #expect(isStored("CDN-Cache-Control: no-store=?0", "Cache-Control: max-age=9"))
    #expect(isStored("CDN-Cache-Control: max-age=9", "CDN-Cache-Control: x=\"\\\"\"", "Cache-Control: no-store"))
    #expect(freshness("CDN-Cache-Control: max-age=9, no-cache").requiresRevalidation)
    #expect(!freshness("CDN-Cache-Control: max-age=9, no-cache=\"x\"").requiresRevalidation)
    #expect(freshness("CDN-Cache-Control: max-age=9, must-revalidate").staleIfErrorUntil == nil)
  }

  @Test("the first valid field of the target list applies")
  func targetList() throws {
    let mine = try #require(HTTPField.Name("Mine-Cache-Control"))
    let validator = ETagValidator(mode: .shared, targets: [mine] + ETagValidator.defaultTargets)
    func lifetime(_ lines: String...) -> Duration {
      let freshness = validator.freshness(
        of: HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines)), requestTime: CacheFixture.start,
        responseTime: CacheFixture.start
      )
      return freshness.freshUntil - freshness.generatedAt
    }
    #expect(lifetime("CDN-Cache-Control: max-age=2", "Mine-Cache-Control: max-age=3", "Cache-Control: max-age=4") == .seconds(3))
    #expect(lifetime("CDN-Cache-Control: max-age=2", "Mine-Cache-Control: ,", "Cache-Control: max-age=4") == .seconds(2))
    #expect(lifetime("CDN-Cache-Control: =", "Cache-Control: max-age=4") == .seconds(4))
  }

  @Test("a shared cache has default heuristics, a private one has none, and both can be changed")
  func heuristics() {
    #expect(ETagValidator(mode: .shared).heuristics == Heuristics())
    #expect(ETagValidator().heuristics == nil)
    #expect(ETagValidator(mode: .shared, heuristics: nil).heuristics == nil)
    for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
      var cache = Self.cache()
      _ = cache.load { _ in .success(.head(status, "Last-Modified: \(date(-1000))", "Date: \(date(0))")) }
      #expect(cache.load { _ in .success(.head(500)) }.source == .cache, "\(status)")
    }
    for (lines, source) in [("X: 1", CacheFixture.Source.network), ("Cache-Control: public", .cache)] {
      var cache = Self.cache()
      _ = cache.load { _ in .success(.head(403, "Last-Modified: \(date(-1000))", lines)) }
      #expect(cache.load { _ in .success(.head(500)) }.source == source)
    }
  }

  @Test("a 401 is not stored in a shared cache")
  func unauthorized() {
    var cache = Self.cache()
    _ = cache.load { _ in .success(.head(401, "Cache-Control: max-age=60")) }
    #expect(cache.entries.isEmpty)
  }

  @Test("validators with different settings have different identities")
  func ids() throws {
    let secret = DigestSecret(high: 1, low: 2)
    let validators = [
      ETagValidator(digestSecret: secret), ETagValidator(mode: .shared, digestSecret: secret),
      ETagValidator(variantLimit: 3, digestSecret: secret), ETagValidator(parts: .reused, digestSecret: secret),
      ETagValidator(targets: [], digestSecret: secret), ETagValidator(heuristics: Heuristics(), digestSecret: secret),
    ]
    #expect(Set(validators.map(\.id)).count == validators.count)
    #expect(ETagValidator(digestSecret: secret).id == validators[0].id)
  }
}
