import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Stored parts")
struct PartTests {
  private func cache(_ parts: PartialResponses = .completed) -> CacheFixture {
    var cache = CacheFixture()
    cache.validator = ETagValidator(parts: parts, digestSecret: DigestSecret(high: 1, low: 2))
    return cache
  }

  private func part(_ bytes: Range<Int64>, of length: Int64 = 100, tag: String = "\"a\"", _ lines: String...) -> HTTPResponse {
    HTTPResponse(
      status: .partialContent,
      headerFields: HTTPFields(
        lines: [
          "ETag: \(tag)", "Cache-Control: max-age=60",
          "Content-Range: bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(length)",
          "Content-Length: \(bytes.count)",
        ] + lines))
  }

  private func load(_ bytes: Range<Int64>, into cache: inout CacheFixture, _ response: HTTPResponse? = nil) {
    cache.length = Int64(bytes.count)
    _ = cache.load(.page(.get, "Range: bytes=\(bytes.lowerBound)-\(bytes.upperBound - 1)")) { _ in
      .success(response ?? part(bytes))
    }
    cache.sent = []
  }

  @Test("a part serves ranges inside it and no other requests")
  func reused() {
    var cache = cache(.reused)
    load(10..<50, into: &cache)
    #expect(cache.entries.map(\.variant) == ["range=bytes=10-49"])
    #expect(cache.stored[0].request.headerFields[.range] == "bytes=10-49")
    let inside = cache.load(.page(.get, "Range: bytes=20-29")) { _ in .success(.head(500)) }
    #expect(inside.reply?.content == .range(10..<20))
    #expect(inside.reply?.head.headerFields[.contentRange] == "bytes 20-29/100")
    #expect(inside.reply?.head.headerFields[.contentLength] == "10")
    #expect(cache.sent.isEmpty)
    for request in [
      HTTPRequest.page(), .page(.head), .page(.get, "Range: bytes=0-20"), .page(.get, "Range: bytes=40-"),
      .page(.get, "Range: bytes=-5"),
    ] {
      #expect(cache.load(request) { _ in .success(.head(503)) }.response?.status.code == 503)
    }
    #expect(cache.sent.count == 5)
    #expect(cache.sent[0] == .page())
  }

  @Test("a part never replaces the whole response and has its own variant")
  func beside() {
    var cache = cache()
    _ = cache.load { _ in .success(.ok("ETag: \"a\"", "Cache-Control: max-age=1")) }
    cache.advance(5)
    load(0..<10, into: &cache)
    #expect(cache.entries.map(\.variant) == ["", "range=bytes=0-9"])
    #expect(cache.load { _ in .success(.head(304, "ETag: \"a\"")) }.source == .revalidated)
    #expect(cache.stored.map(\.response.status.code) == [200, 206])
  }

  @Test(
    "a part that cannot be identified is not stored",
    arguments: [
      "ETag: W/\"a\"", "ETag: junk", "Content-Range: bytes 0-9/*", "Content-Range: bytes */100", "Content-Range: x",
      "Content-Range: bytes 0-9/9223372036854775808", "Content-Type: multipart/byteranges; boundary=x",
    ])
  func refused(line: String) {
    var response = part(0..<10)
    let field = HTTPFields(lines: [line])
    for name in field.map(\.name) { response.headerFields[name] = field[name] }
    if line.hasPrefix("Content-Type") { response.headerFields[.contentRange] = nil }
    var cache = cache()
    load(0..<10, into: &cache, response)
    #expect(cache.entries.isEmpty)
  }

  @Test("a part that was not requested is not stored, nor is any part if parts are ignored")
  func notStored() {
    var cache = cache()
    _ = cache.load { _ in .success(part(0..<10)) }
    #expect(cache.entries.isEmpty)
    cache = self.cache(.ignored)
    load(0..<10, into: &cache)
    #expect(cache.entries.isEmpty)
  }

  @Test("a part without a lifetime is stored, and is confirmed before its use", arguments: ["x", "max-age=0", "no-cache"])
  func withoutLifetime(directives: String) {
    var cache = cache()
    var response = part(0..<10)
    response.headerFields[.cacheControl] = directives
    load(0..<10, into: &cache, response)
    #expect(cache.entries.count == 1)
    let outcome = cache.load(.page(.get, "Range: bytes=0-4")) { head in
      #expect(head.headerFields[.ifNoneMatch] == "\"a\"")
      return .success(.head(304, "ETag: \"a\""))
    }
    #expect(outcome.source == .revalidated)
    #expect(outcome.reply?.content == .range(0..<5))
  }

  @Test("the whole response is combined from the stored parts and the missing bytes")
  func completed() throws {
    var cache = cache()
    load(0..<40, into: &cache)
    load(60..<70, into: &cache)
    let outcome = cache.load { head in
      #expect(head.headerFields[.ifRange] == "\"a\"")
      #expect(head.headerFields[.acceptEncoding] == "identity", "a platform must not decode a part")
      return .success(head.headerFields[.range] == "bytes=40-59" ? part(40..<60) : part(70..<100))
    }
    #expect(outcome.source == .completed)
    #expect(cache.sent.map { $0.headerFields[.range] } == ["bytes=40-59", "bytes=70-99"])
    #expect(outcome.reply?.content == .whole)
    let whole = try #require(cache.stored.first)
    #expect(cache.entries.map(\.variant) == [""])
    #expect(whole.response.status == .ok)
    #expect(whole.bodyLength == 100)
    #expect(whole.response.headerFields[.contentLength] == "100")
    #expect(whole.response.headerFields[.contentRange] == nil)
    #expect(whole.request.headerFields.isEmpty)
    #expect(cache.load { _ in .success(.head(500)) }.source == .cache)
  }

  @Test("a wider range is combined, and its reply has the requested range", arguments: ["bytes=20-79", "bytes=20-", "bytes=-80"])
  func wider(range: String) throws {
    var cache = cache()
    load(10..<50, into: &cache)
    let outcome = cache.load(.page(.get, "Range: \(range)")) { _ in .success(part(50..<100)) }
    let end: Int64 = range.hasSuffix("79") ? 80 : 100
    #expect(outcome.source == .completed)
    #expect(cache.sent.map { $0.headerFields[.range] } == ["bytes=50-\(end - 1)"])
    #expect(outcome.reply?.content == .range(20..<end))
    #expect(outcome.reply?.head.headerFields[.contentRange] == "bytes 20-\(end - 1)/100")
  }

  @Test("parts that follow each other serve a range over both without a request, and only while they are fresh")
  func adjacent() throws {
    var cache = cache()
    load(0..<50, into: &cache)
    load(50..<100, into: &cache)
    let request = HTTPRequest.page(.get, "Range: bytes=40-59")
    #expect(cache.load(request) { _ in .success(.head(500)) }.source == .completed)
    #expect(cache.sent.isEmpty)
    #expect(cache.load(request, .cacheOnly) { _ in .success(.head(500)) }.source == .completed)
    cache.advance(100)
    #expect(cache.load(request) { _ in .success(.head(503)) }.response?.status.code == 503)
    #expect(cache.sent.map { $0.headerFields[.range] } == ["bytes=0-0", "bytes=40-59"])
    cache.sent = []
    #expect(cache.load(request) { _ in .success(part(0..<1)) }.source == .completed)
    #expect(cache.sent.map { $0.headerFields[.range] } == ["bytes=0-0"] && cache.sent.first?.headerFields[.ifRange] == "\"a\"")
    #expect(cache.load(request) { _ in .success(.head(500)) }.source == .completed)
    #expect(cache.sent.count == 1)
  }

  @Test("stale parts are combined if missing bytes confirm them")
  func stale() throws {
    var cache = cache()
    load(0..<40, into: &cache)
    cache.advance(500)
    let outcome = cache.load { _ in .success(part(40..<100)) }
    #expect(outcome.source == .completed)
    #expect(try #require(cache.combinations.last).requiresValidation)
    #expect(cache.load(.page(), .cacheOnly) { _ in .success(.head(500)) }.source == .cache)
  }

  @Test("parts of several states, lengths and codings are never combined: the latest decides")
  func states() {
    for other in [part(40..<50, tag: "\"b\""), part(40..<50, of: 200), part(40..<50, "Content-Encoding: br")] {
      var cache = cache()
      load(0..<40, into: &cache)
      // The validator drops the first part. A store of another process may still have it.
      let first = cache.entries
      load(40..<50, into: &cache, other)
      cache.entries.insert(contentsOf: first, at: 0)
      cache.advance(1)
      guard
        case .combine(let combination) = cache.validator.plan(.page(), policy: .standard, stored: cache.stored, now: cache.now)
      else {
        Issue.record("the parts are not combined")
        return
      }
      #expect(combination.parts.map(\.bytes).count == 1)
    }
  }

  @Test("a part whose transfer broke off has the bytes that are stored")
  func broken() throws {
    var cache = cache()
    cache.length = 25
    _ = cache.load(.page(.get, "Range: bytes=10-49")) { _ in .success(part(10..<50)) }
    let inside = cache.load(.page(.get, "Range: bytes=20-34")) { _ in .success(.head(500)) }
    #expect(inside.reply?.content == .range(10..<25))
    let beyond = cache.load(.page(.get, "Range: bytes=20-49")) { _ in .success(part(35..<50)) }
    #expect(beyond.source == .completed)
    #expect(cache.sent.last?.headerFields[.range] == "bytes=35-49")
  }

  @Test(
    "parts are not combined for requests that only the origin can answer",
    arguments: [
      ["Range: bytes=0-20, 30-60"], ["Range: bytes=100-"], ["If-None-Match: \"a\""], ["Cache-Control: no-store"],
      ["If-Match: \"a\""],
    ])
  func notCombined(lines: [String]) {
    var cache = cache()
    load(0..<40, into: &cache)
    var request = HTTPRequest.page()
    request.headerFields = HTTPFields(lines: lines)
    _ = cache.load(request) { _ in .success(.head(500)) }
    #expect(cache.combinations.isEmpty)
    #expect(cache.sent.count == 1)
  }

  @Test("If-Range with the validator of the parts gets the range, and with another one the whole response")
  func ifRange() {
    var cache = cache()
    load(0..<40, into: &cache)
    let same = cache.load(.page(.get, "Range: bytes=30-49", "If-Range: \"a\"")) { _ in .success(part(40..<50)) }
    #expect(same.reply?.head.status == .partialContent)
    #expect(cache.sent.map { $0.headerFields[.range] } == ["bytes=40-49"])
    let other = cache.load(.page(.get, "Range: bytes=30-39", "If-Range: \"b\"")) { _ in .success(part(50..<100)) }
    #expect(other.reply?.head.status == .ok)
    #expect(cache.sent.last?.headerFields[.range] == "bytes=50-99")
  }

  @Test("a date is a strong validator of parts if it is at least a minute old, and there is no tag")
  func date() {
    let old = "Last-Modified: Wed, 31 Dec 2025 23:00:00 GMT"
    for (date, isStored) in [(old, true), ("Last-Modified: Wed, 31 Dec 2025 23:59:30 GMT", false)] {
      var cache = cache()
      var response = part(0..<40, date, "Date: Thu, 01 Jan 2026 00:00:00 GMT")
      response.headerFields[.eTag] = nil
      load(0..<40, into: &cache, response)
      #expect(cache.entries.isEmpty != isStored)
      guard isStored else { continue }
      _ = cache.load { _ in .success(.head(503)) }
      #expect(cache.sent.first?.headerFields[.ifRange] == "Wed, 31 Dec 2025 23:00:00 GMT")
    }
  }

  @Test("a new part replaces parts inside it and parts of another state")
  func replacing() {
    var cache = cache()
    load(0..<10, into: &cache)
    load(50..<60, into: &cache)
    load(40..<70, into: &cache)
    #expect(cache.entries.map(\.variant) == ["range=bytes=0-9", "range=bytes=40-69"])
    load(80..<90, into: &cache, part(80..<90, tag: "\"b\""))
    #expect(cache.entries.map(\.variant) == ["range=bytes=80-89"])
  }

  @Test("a stale part is revalidated, and a 304 updates it")
  func revalidated() {
    var cache = cache()
    load(10..<50, into: &cache)
    cache.advance(100)
    let outcome = cache.load(.page(.get, "Range: bytes=10-19")) { head in
      #expect(head.headerFields[.ifNoneMatch] == "\"a\"")
      return .success(.head(304, "ETag: \"a\""))
    }
    #expect(outcome.source == .revalidated)
    #expect(outcome.reply?.content == .range(0..<10))
    #expect(cache.entries.count == 1)
    #expect(SelectingName.variant(of: cache.stored[0]) == "bytes=10-49")
  }
}

private enum SelectingName {
  static func variant(of metadata: StoredMetadata) -> String? { metadata.request.headerFields[.range] }
}
