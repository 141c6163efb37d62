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
      "Content-Range: bytes 0-9/9223372036854775808", "Cache-Control: x", "Cache-Control: max-age=0",
      "Content-Type: multipart/byteranges; boundary=x",
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

  @Test("a prefix is completed by requesting only the rest")
  func completed() throws {
    var cache = cache()
    load(0..<40, into: &cache)
    cache.advance(500)
    let outcome = cache.load { head in
      #expect(head.headerFields[.range] == "bytes=40-")
      #expect(head.headerFields[.ifRange] == "\"a\"")
      return .success(part(40..<100, "X-New: 1"))
    }
    #expect(outcome.source == .completed)
    #expect(cache.completed == [0])
    #expect(outcome.reply?.content == .whole)
    let whole = try #require(cache.stored.first)
    #expect(cache.entries.map(\.variant) == [""])
    #expect(whole.response.status == .ok)
    #expect(whole.bodyLength == 100)
    #expect(whole.response.headerFields[.contentLength] == "100")
    #expect(whole.response.headerFields[.contentRange] == nil)
    #expect(whole.response.headerFields[text: "X-New"] == "1")
    #expect(whole.freshness.isFresh(at: cache.now))
    #expect(cache.load { _ in .success(.head(500)) }.source == .cache)
  }

  @Test(
    "a rest that does not match leads to a request for the whole response",
    arguments: [
      (40..<100, 100, "\"b\""), (41..<100, 100, "\"a\""), (40..<90, 100, "\"a\""), (40..<100, 120, "\"a\""),
      (40..<100, 100, "W/\"a\""),
    ]
      as [(Range<Int64>, Int64, String)])
  func misfit(bytes: Range<Int64>, length: Int64, tag: String) {
    var cache = cache()
    load(0..<40, into: &cache)
    let outcome = cache.load { head in
      .success(head.headerFields[.range] == nil ? .ok("ETag: \"c\"") : part(bytes, of: length, tag: tag))
    }
    #expect(outcome.source == .network)
    #expect(outcome.response?.status == .ok)
    #expect(cache.sent.last == .page())
    #expect(cache.entries.map(\.variant) == [""])
  }

  @Test("if the origin sends the whole response or an error instead of the rest, it is returned", arguments: [200, 404, 503])
  func insteadOfRest(status: Int) {
    var cache = cache()
    load(0..<40, into: &cache)
    let outcome = cache.load { _ in .success(.head(status, "ETag: \"b\"")) }
    #expect(outcome.response?.status.code == status)
    #expect(cache.entries.count == 1)
    #expect(cache.stored[0].isPartForTest == (status != 200))
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

extension StoredMetadata {
  fileprivate var isPartForTest: Bool { response.status == .partialContent }
}
