import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Revalidation and the 304")
struct RevalidationTests {
  /// Returns a cache with one stored response, ten seconds later.
  private func cache(_ response: HTTPResponse) -> CacheFixture {
    var cache = CacheFixture()
    _ = cache.load { _ in .success(response) }
    cache.advance(10)
    cache.sent = []
    return cache
  }

  @Test(
    "the origin's own validators are sent byte for byte",
    arguments: [
      (["ETag: \"a\""], "\"a\"", nil), (["ETag: W/\"a\""], "W/\"a\"", nil), (["ETag: abc"], "abc", nil), (["ETag:"], nil, nil),
      (["Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT"], nil, "Sunday, 06-Nov-94 08:49:37 GMT"),
      (["ETag: \"a\"", "Last-Modified: yesterday"], "\"a\"", "yesterday"), (["ETag: \"a\"", "ETag: \"b\""], "\"a\"", nil),
      ([], nil, nil),
    ] as [([String], String?, String?)])
  func conditions(lines: [String], tag: String?, modified: String?) {
    var cache = cache(HTTPResponse(status: .ok, headerFields: HTTPFields(lines: lines)))
    _ = cache.load(.page(.get, "Cache-Control: x", "X-A: 1")) { _ in .success(.head(503)) }
    #expect(cache.sent.count == 1)
    #expect(cache.sent[0].headerFields[.ifNoneMatch] == tag)
    #expect(cache.sent[0].headerFields[.ifModifiedSince] == modified)
    #expect(cache.sent[0].headerFields[.cacheControl] == "x")
    #expect(cache.sent[0].headerFields[text: "X-A"] == "1")
  }

  @Test("a compressed file needs only a 304, and the tag of its bytes stays weak")
  func compressed() {
    // Given an origin that weakens the tag of the compressed 200, but not that of the 304
    var cache = cache(.ok("ETag: W/\"65a-1f\"", "Content-Encoding: gzip", "Cache-Control: max-age=5"))
    let revision = cache.stored[0].revision

    // When the response is revalidated repeatedly
    for _ in 0..<2 {
      let outcome = cache.load { head in
        .success(head.headerFields[.ifNoneMatch] == nil ? .ok() : .head(304, "ETag: \"65a-1f\""))
      }
      #expect(outcome.source == .revalidated)
      cache.advance(10)
    }

    // Then no body is loaded, and the 304's strong tag is not attached to bytes that it was not issued for
    #expect(cache.sent.map { $0.headerFields[.ifNoneMatch] } == ["W/\"65a-1f\"", "W/\"65a-1f\""])
    #expect(cache.stored[0].response.headerFields[.eTag] == "W/\"65a-1f\"")
    #expect(cache.stored[0].revision == revision)
  }

  @Test(
    "a tag that the origin could read as any tag or as several is not sent",
    arguments: [
      "*", "  * ", "*abc", "*, \"a\"", "a,b", "a, *", "\"a\", \"b\"", "\"a\",", "W/\"a\", *", "\"a,b", "w/\"a,b\"",
      "\"a, b\"",
    ])
  func notRevalidatable(tag: String) {
    var cache = cache(.ok("ETag: \(tag)"))
    // The origin would confirm any response.
    let outcome = cache.load { head in .success(head.headerFields[.ifNoneMatch] == nil ? .ok("X-New: 1") : .head(304)) }
    #expect(outcome.source == .network)
    #expect(cache.sent.map { $0.headerFields[.ifNoneMatch] } == [nil])
  }

  @Test("a date is sent even if the tag cannot be")
  func dateAlone() {
    var cache = cache(.ok("ETag: *", "Last-Modified: \(date(-9))"))
    #expect(cache.load { head in .success(head == .page() ? .ok() : .head(304)) }.source == .revalidated)
    #expect(cache.sent[0].headerFields[.ifNoneMatch] == nil)
    #expect(cache.sent[0].headerFields[.ifModifiedSince] == date(-9))
  }

  @Test(
    "a valid tag is sent whatever it contains, and so is a single invalid one",
    arguments: ["\"a,b\"", "W/\"a,*\"", "\"*\"", "\"\"", "abc", "\"a", "a b", "w/\"a\""])
  func revalidatable(tag: String) {
    var cache = cache(.ok("ETag: \(tag)"))
    #expect(cache.load { head in .success(head == .page() ? .ok() : .head(304)) }.source == .revalidated)
    #expect(cache.sent.map { $0.headerFields[.ifNoneMatch] } == [tag])
  }

  @Test("a tag that is not UTF-8 is sent unchanged")
  func tagBytes() {
    let tag = HTTPField(name: .eTag, value: [0x22, 0xFF, 0xE9, 0x22])
    var cache = cache(HTTPResponse(status: .ok, headerFields: HTTPFields([tag])))
    _ = cache.load { _ in .success(.head(304)) }
    let sent = cache.sent[0].headerFields.first { $0.name == .ifNoneMatch }
    #expect(sent?.withUnsafeBytesOfValue { Array($0) } == [0x22, 0xFF, 0xE9, 0x22])
  }

  @Test("a 304 replaces all values of its fields, and other fields and those that belong to the bytes remain")
  func merging() throws {
    var cache = cache(
      .ok(
        "Date: \(date(0))", "Age: 3", "ETag: \"a\"", "Last-Modified: \(date(-99))", "Content-Type: image/png",
        "Content-Length: 5",
        "Content-Encoding: gzip", "Content-Language: de", "X-Old: 1", "X-Two: 1", "X-Two: 2", "Cache-Control: max-age=1",
        "Set-Cookie: a=1", "Content-Security-Policy: old"))
    let before = try #require(cache.stored.first)
    let outcome = cache.load { _ in
      .success(
        .head(
          304, "ETag: W/\"a\"", "Last-Modified: \(date(-50))", "Content-Type: text/plain", "Content-Length: 0",
          "Content-Range: x",
          "Content-Encoding: br", "Content-Language: en", "Content-MD5: x", "X-Two: 3", "Cache-Control: max-age=60",
          "Connection: X-Hop",
          "X-Hop: 1", "Transfer-Encoding: chunked", "Set-Cookie: b=2", "Content-Security-Policy: new", "X-New: 1"))
    }
    #expect(outcome.source == .revalidated)
    let after = try #require(cache.stored.first)
    let fields = after.response.headerFields
    let expected: [(String, String?)] = [
      ("ETag", "\"a\""), ("Last-Modified", date(-50)), ("Content-Type", "text/plain"), ("Content-Length", "5"),
      ("Content-Encoding", "gzip"), ("Content-Language", "en"), ("Content-Range", nil), ("Content-MD5", "x"), ("X-Old", "1"),
      ("X-Two", "3"), ("X-New", "1"), ("X-Hop", nil), ("Connection", nil), ("Transfer-Encoding", nil),
      ("Cache-Control", "max-age=60"),
      ("Set-Cookie", "b=2"), ("Content-Security-Policy", "new"), ("Date", nil), ("Age", nil),
    ]
    for (name, value) in expected { #expect(fields[text: name] == value, "\(name)") }
    #expect(after.response.status == .ok)
    #expect(after.revision == before.revision)
    #expect(after.responseTime == CacheFixture.start + .seconds(10))
    #expect(after.freshness.freshUntil == CacheFixture.start + .seconds(70))
  }

  @Test(
    "after several 304s, the latest fields are at the end, in their order and spelling, without duplicates",
    arguments: [
      // fields of the second 304, stored fields
      (["Server: s", "Date: D", "X-A: 1"], ["ETag: \"a\"", "X-Old: 1", "Server: s", "Date: D", "X-A: 1"]),
      (["Server: s", "Date: E", "X-A: 2"], ["ETag: \"a\"", "X-Old: 1", "Server: s", "Date: E", "X-A: 2"]),
      (["Server: s", "Date: D", "x-a: 1"], ["ETag: \"a\"", "X-Old: 1", "Server: s", "Date: D", "x-a: 1"]),
      (["Date: D", "Server: s", "X-A: 1"], ["ETag: \"a\"", "X-Old: 1", "Date: D", "Server: s", "X-A: 1"]),
      (["X-A: 1"], ["ETag: \"a\"", "X-Old: 1", "Server: s", "X-A: 1"]),
      (["Server: s", "Date: D", "X-A: 1", "X-Old: 2"], ["ETag: \"a\"", "Server: s", "Date: D", "X-A: 1", "X-Old: 2"]),
      (["X-A: 1", "X-A: 2"], ["ETag: \"a\"", "X-Old: 1", "Server: s", "X-A: 1", "X-A: 2"]),
      (["Server: s", "Date: D", "X-A: e\u{301}"], ["ETag: \"a\"", "X-Old: 1", "Server: s", "Date: D", "X-A: e\u{301}"]),
    ])
  func mergingAgain(second: [String], stored: [String]) throws {
    // Given a response that a first 304 has updated
    var cache = cache(.ok("ETag: \"a\"", "X-Old: 1", "Cache-Control: no-cache"))
    let first = [
      "Cache-Control: no-cache", "Server: s", "Date: D", "X-A: \(second.last?.hasSuffix("\u{301}") == true ? "\u{E9}" : "1")",
    ]
    _ = cache.load { _ in .success(HTTPResponse(status: .notModified, headerFields: HTTPFields(lines: first))) }
    cache.advance(10)

    // When a second 304 arrives
    let outcome = cache.load { _ in .success(HTTPResponse(status: .notModified, headerFields: HTTPFields(lines: second))) }

    // Then its fields replace those of the first
    #expect(outcome.source == .revalidated)
    let fields = try #require(cache.stored.first).response.headerFields.filter { $0.name != .cacheControl }
    #expect(fields.map { Array("\($0.name.rawName): \($0.value)".utf8) } == stored.map { Array($0.utf8) })
  }

  @Test("a 304 leaves body length, trailers and the store's time to live unchanged")
  func kept() {
    var cache = cache(.ok("ETag: \"a\""))
    cache.entries[0].metadata.bodyLength = 17
    cache.entries[0].metadata.trailers = [.eTag: "x"]
    cache.entries[0].metadata.expiration = .never
    let before = cache.stored[0]
    _ = cache.load { _ in .success(.head(304)) }
    #expect(cache.stored[0].bodyLength == 17)
    #expect(cache.stored[0].trailers == before.trailers)
    #expect(cache.stored[0].expiration == .never)
  }

  @Test("the age after a 304 includes the delay and follows from its own Date and Age")
  func updatedAge() {
    var cache = cache(.ok("Date: \(date(0))", "Age: 50", "ETag: \"a\"", "Cache-Control: max-age=20"))
    cache.latency = .seconds(4)
    _ = cache.load { _ in .success(.head(304, "Date: \(date(10))", "Age: 1")) }
    #expect(cache.stored[0].freshness.age(at: cache.now) == .seconds(5))
    #expect(cache.stored[0].response.headerFields[.age] == "1")
  }

  @Test(
    "a 304 confirms by the validators that it has",
    arguments: [
      // stored tag, stored date, 304's tag, 304's date, whether it confirms
      ("\"a\"", nil, "\"a\"", nil, true), ("\"a\"", nil, "\"b\"", nil, false), ("\"a\"", nil, "W/\"a\"", nil, true),
      ("W/\"a\"", nil, "W/\"a\"", nil, true), ("W/\"a\"", nil, "\"a\"", nil, true), ("W/\"a\"", nil, "W/\"b\"", nil, false),
      ("W/\"a\"", nil, "\"b\"", nil, false), ("W/\"a\"", nil, nil, nil, true), ("W/\"a\"", date(-9), "\"a\"", date(-8), true),
      ("\"a\"", nil, nil, nil, true), (nil, date(-9), nil, date(-9), true), (nil, date(-9), nil, date(-8), false),
      (nil, date(-9), nil, nil, true), ("\"a\"", date(-9), "\"a\"", date(-8), true), (nil, date(-9), "\"a\"", date(-9), false),
      ("\"a\"", nil, nil, date(-8), true), ("\"a\"", date(-9), nil, date(-8), true),
      // A tag that the plan does not send is ignored, so the date decides.
      ("*", date(-9), "*", date(-9), true), ("*", date(-9), "*", date(-8), false), ("*", date(-9), "a, b", nil, true),
    ] as [(String?, String?, String?, String?, Bool)])
  func confirmation(storedTag: String?, storedDate: String?, tag: String?, modified: String?, confirms: Bool) {
    var response = HTTPResponse.ok()
    (response.headerFields[.eTag], response.headerFields[.lastModified]) = (storedTag, storedDate)
    var notModified = HTTPResponse.head(304)
    (notModified.headerFields[.eTag], notModified.headerFields[.lastModified]) = (tag, modified)
    var cache = cache(response)
    let outcome = cache.load { head in
      .success(
        head.headerFields[.ifNoneMatch] == nil && head.headerFields[.ifModifiedSince] == nil ? .ok("X-New: 1") : notModified)
    }
    #expect(outcome.source == (confirms ? .revalidated : .network))
    #expect(cache.sent.count == (confirms ? 1 : 2))
    #expect(cache.entries.count == 1)
  }

  @Test("a 304 to an unconditional request leads to one more unconditional request", arguments: [LoadPolicy.standard, .reload])
  func unrequested(policy: LoadPolicy) {
    for response in [HTTPResponse.ok("Cache-Control: no-store"), .ok(), .ok("ETag: \"a\"")]
    where policy == .reload || response != .ok("ETag: \"a\"") {
      var cache = cache(response)
      var responses: [HTTPResponse] = [.ok("X-New: 1"), .head(304, "ETag: \"a\"")]
      var heads: [HTTPRequest] = []
      let outcome = cache.load(.page(), policy) { head in
        heads.append(head)
        return .success(responses.popLast() ?? .head(500))
      }
      #expect(outcome.response == .ok("X-New: 1"))
      #expect(heads.count == 2)
      #expect(heads.last == (policy == .reload ? .page(.get, "Cache-Control: no-cache") : .page()))
    }
  }

  @Test("a 304 for a response that was replaced in the meantime confirms nothing")
  func replacedMeanwhile() {
    var cache = cache(.ok("ETag: \"a\""))
    let before = cache
    _ = cache.load { _ in .success(.ok("ETag: \"b\"")) }
    let sent = HTTPRequest.page(.get, "If-None-Match: \"a\"")
    let verdict = before.validator.judge(
      .success(.head(304)), to: .page(), sent: sent, fallback: 0, stored: cache.stored, requestTime: cache.now, now: cache.now,
      revision: Revision(high: 0, low: 9))
    guard case .refetch = verdict else {
      Issue.record("\(verdict)")
      return
    }
  }

  @Test("a 304 that forbids storing confirms the body, but its fields are not stored")
  func notModifiedNoStore() {
    var cache = cache(.ok("ETag: \"a\""))
    let before = cache.stored
    #expect(cache.load { _ in .success(.head(304, "Cache-Control: no-store", "X-Secret: 1")) }.source == .revalidated)
    #expect(cache.stored == before)
  }

  @Test("a new response replaces the stored one and gets a new revision")
  func replacement() {
    var cache = cache(.ok("ETag: \"a\"", "X-Old: 1"))
    let old = cache.stored[0].revision
    #expect(cache.load { _ in .success(.ok("ETag: \"b\"")) }.source == .network)
    #expect(cache.entries.count == 1)
    #expect(cache.stored[0].revision != old)
    #expect(cache.stored[0].response.headerFields[text: "X-Old"] == nil)
  }

  @Test("an error of the origin leaves the stored response unchanged", arguments: [500, 502, 503, 504, 404, 429])
  func errors(status: Int) {
    var cache = cache(.ok("ETag: \"a\""))
    let before = cache.stored
    let outcome = cache.load { _ in .success(.head(status)) }
    #expect(outcome.response?.status.code == status)
    #expect(cache.stored == before)
    #expect(cache.shareable == [true])
    #expect(cache.invalidated.isEmpty)
  }

  @Test("65,000 fields in a 304 do not trap")
  func manyFields() {
    var cache = cache(.ok("ETag: \"a\"", "X-Old: 1"))
    var many = HTTPResponse.head(304)
    many.headerFields = HTTPFields((0..<65_533).map { HTTPField(name: .server, value: "\($0)") })
    let outcome = cache.load { head in .success(head.headerFields[.ifNoneMatch] == nil ? .ok() : many) }
    #expect(outcome.source == .network)
  }
}
