import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Age and freshness lifetime")
struct FreshnessTests {
  private let validator = ETagValidator()

  private func freshness(_ response: HTTPResponse, delay: Int64 = 0, _ validator: ETagValidator? = nil) -> Freshness {
    (validator ?? self.validator).freshness(
      of: response, requestTime: CacheFixture.start - .seconds(delay), responseTime: CacheFixture.start)
  }

  @Test(
    "the initial age is the larger of the apparent age and the stated age plus the delay",
    arguments: [
      // Date, Age, delay, age
      (date(0), nil, 0, 0), (date(-30), nil, 0, 30), (date(-30), nil, 10, 30), (date(0), "40", 0, 40), (date(0), "40", 5, 45),
      (date(-60), "40", 5, 60), (date(500), nil, 0, 0), (date(500), "7", 0, 7), (nil, nil, 0, 0), (nil, nil, 9, 9),
      ("junk", "3", 0, 3),
      (date(0), "-4", 0, 0), (date(0), "4.5", 0, 0), (date(0), "abc", 0, 0), (date(0), "5, 80", 0, 5), (date(0), ", 5", 0, 5),
      (date(0), "99999999999", 0, 2_147_483_648), (date(0), nil, -20, 0),
    ] as [(String?, String?, Int64, Int64)])
  func age(dateLine: String?, ageLine: String?, delay: Int64, age: Int64) {
    var response = HTTPResponse.ok()
    response.headerFields[.date] = dateLine
    response.headerFields[.age] = ageLine
    #expect(freshness(response, delay: delay).age(at: CacheFixture.start) == .seconds(age))
  }

  @Test(
    "the lifetime is max-age, or Expires minus Date, or zero",
    arguments: [
      (["Cache-Control: max-age=60"], 60), (["Cache-Control: max-age=60", "Expires: \(date(9))"], 60),
      (["Cache-Control: s-maxage=99, max-age=60"], 60), (["Cache-Control: s-maxage=99"], 0),
      (["Cache-Control: max-age=junk", "Expires: \(date(9))"], 0), (["Expires: \(date(9))"], 9), (["Expires: \(date(-9))"], 0),
      (["Expires: \(date(9))", "Date: \(date(3))"], 6), (["Expires: 0"], 0), (["Expires: -1"], 0), (["Expires:"], 0),
      (["Expires: \(date(9))", "Expires: \(date(4))"], 4), (["Expires: \(date(9))", "Expires: junk"], 0),
      (["Expires: Thu, 01 Jan 2026 00:00:09 UTC"], 0), (["Expires: Thu, 01 Jan 2026 00:00:09 EST"], 0),
      (["Expires: Thursday, 01-Jan-26 00:00:09 UTC"], 0), (["Expires: Thursday, 01-Jan-26 00:00:09 GMT"], 9),
      (["Expires: Thu Jan  1 00:00:09 2026"], 9), (["Expires: thu, 01 jan 2026 00:00:09 gmt"], 9),
      (["Expires: Thu, 01 Jan 2026 00:00:09 +0000"], 0), (["Expires: \(date(9))", "Date: Thu, 01 Jan 2026 00:00:03 UTC"], 6),
      (["Expires: \(date(9))", "Date: junk"], 9), ([], 0), (["Pragma: no-cache", "Cache-Control: max-age=5"], 5),
      (["Cache-Control: max-age=99999999999"], 2_147_483_648), (["Cache-Control: immutable"], 0),
      (["Cache-Control: immutable, max-age=5"], 5), (["Cache-Control: public"], 0),
    ] as [([String], Int64)])
  func lifetime(lines: [String], seconds: Int64) {
    let freshness = freshness(HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines)))
    #expect(freshness.freshUntil - freshness.generatedAt == .seconds(seconds))
  }

  @Test(
    "the directives limit how long a stale response may be used",
    arguments: [
      ("max-age=60", nil, true, false), ("max-age=60, stale-while-revalidate=30", 90, true, false),
      ("max-age=60, stale-while-revalidate=x", 60, true, false),
      ("max-age=60, stale-while-revalidate=30, must-revalidate", nil, false, false),
      ("max-age=60, stale-while-revalidate=30, no-cache", nil, false, true),
      ("max-age=60, no-cache=\"set-cookie\"", nil, true, false), ("max-age=60, no-cache=\"set-cookie, vary\"", nil, false, true),
      ("max-age=60, no-cache=set-cookie", nil, false, true), ("max-age=60, no-cache=\"\"", nil, false, true),
      ("max-age=60, no-cache=\"set-cookie\", no-cache", nil, false, true),
      ("max-age=60, proxy-revalidate, stale-while-revalidate=30", 90, true, false),
    ] as [(String, Int64?, Bool, Bool)])
  func staleness(directives: String, staleUntil: Int64?, offline: Bool, requiresRevalidation: Bool) {
    let freshness = freshness(.ok("Cache-Control: \(directives)"))
    #expect(freshness.staleWhileRevalidateUntil == staleUntil.map { CacheFixture.start + .seconds($0) })
    #expect(freshness.staleIfErrorUntil == (offline ? .distantFuture : nil))
    #expect(freshness.requiresRevalidation == requiresRevalidation)
  }

  @Test("by default there is no heuristic lifetime")
  func noGuess() {
    let response = HTTPResponse.ok("Last-Modified: \(date(-864_000))")
    #expect(freshness(response).freshUntil == freshness(response).generatedAt)
    #expect(cacheUse(of: response) == .conditionallyCached)
  }

  @Test(
    "the heuristic lifetime is a tenth of the time since the modification, up to a maximum, for cacheable statuses",
    arguments: [
      (200, date(-1_000), 100), (200, date(-100_000_000), 86_400), (200, date(50), 0), (200, "junk", 0), (410, date(-1_000), 100),
      (302, date(-1_000), 0), (500, date(-1_000), 0),
    ] as [(Int, String, Int64)])
  func heuristics(status: Int, modified: String, seconds: Int64) {
    let freshness = freshness(.head(status, "Last-Modified: \(modified)"), ETagValidator(heuristics: Heuristics()))
    #expect(freshness.freshUntil - freshness.generatedAt == .seconds(seconds))
  }

  @Test(
    "a stated lifetime takes precedence over heuristics, even if it is invalid",
    arguments: ["Expires: 0", "Cache-Control: max-age=x"])
  func statedBeatsGuessed(line: String) {
    let response = HTTPResponse.ok(line, "Last-Modified: \(date(-1_000))")
    let generous = ETagValidator(heuristics: Heuristics(), defaultLifetime: .seconds(99))
    #expect(freshness(response, generous).freshUntil == CacheFixture.start)
  }

  @Test("the default lifetime applies only to responses without any other lifetime")
  func defaultLifetime() {
    let validator = ETagValidator(heuristics: Heuristics(), defaultLifetime: .seconds(99))
    #expect(freshness(.ok(), validator).freshUntil == CacheFixture.start + .seconds(99))
    #expect(freshness(.ok("Last-Modified: \(date(-100))"), validator).freshUntil == CacheFixture.start + .seconds(10))
    #expect(freshness(.head(302), validator).freshUntil == CacheFixture.start)
  }

  @Test("validators have equal identities exactly if their settings are equal")
  func identity() {
    let secret = DigestSecret(high: 1, low: 2)
    let plain = ETagValidator(digestSecret: secret)
    #expect(plain.id == ETagValidator(digestSecret: secret).id)
    #expect(plain.id != ETagValidator(heuristics: Heuristics(), digestSecret: secret).id)
    #expect(plain.id != ETagValidator(defaultLifetime: .seconds(1), digestSecret: secret).id)
    #expect(plain.id != ETagValidator(digestSecret: DigestSecret(high: 1, low: 3)).id)
    #expect(!"\(secret)\(String(reflecting: secret))".contains("2"))
  }
}
