import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Ranges of a stored response")
struct RangeTests {
  private let fresh = [
    "ETag: \"a\"", "Date: \(date(0))", "Last-Modified: \(date(-9))", "Cache-Control: max-age=60", "Content-Length: 100",
    "Content-MD5: x",
  ]

  private func reply(_ lines: String..., length: Int64? = 100, stored: [String]? = nil) -> StoredReply? {
    var cache = CacheFixture()
    cache.length = length
    _ = cache.load { _ in .success(HTTPResponse(status: .ok, headerFields: HTTPFields(lines: stored ?? fresh))) }
    var request = HTTPRequest.page()
    request.headerFields = HTTPFields(lines: lines)
    return cache.load(request) { _ in .success(.head(500)) }.reply
  }

  @Test(
    "a single range is served from the whole response",
    arguments: [
      ("bytes=0-9", 0..<10), ("bytes=10-", 10..<100), ("bytes=-5", 95..<100), ("bytes=90-200", 90..<100), ("bytes=-500", 0..<100),
      ("bytes=99-99", 99..<100), ("BYTES= 0-9 ", 0..<10), ("bytes=0-99999999999999999999999", 0..<100), ("bytes=,0-9,", 0..<10),
    ] as [(String, Range<Int64>)])
  func satisfied(text: String, bytes: Range<Int64>) {
    let reply = reply("Range: \(text)")
    #expect(reply?.head.status == .partialContent)
    #expect(reply?.content == .range(bytes))
    #expect(reply?.head.headerFields[.contentRange] == "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/100")
    #expect(reply?.head.headerFields[.contentLength] == "\(bytes.count)")
    #expect(reply?.head.headerFields[.eTag] == "\"a\"")
    #expect(reply?.head.headerFields[text: "Content-MD5"] == nil)
    #expect(reply?.head.headerFields[.age] == "0")
  }

  @Test("a range outside the body gets a 416", arguments: ["bytes=100-", "bytes=100-200", "bytes=-0"])
  func unsatisfied(text: String) {
    let reply = reply("Range: \(text)")
    #expect(reply?.head.status == .rangeNotSatisfiable)
    #expect(reply?.head.headerFields[.contentRange] == "bytes */100")
    #expect(reply?.content == StoredReply.Content.none)
  }

  @Test(
    "an invalid range, another unit or several ranges get the whole response",
    arguments: [
      "bytes=", "bytes=a-b", "bytes=9-0", "bytes=-", "bytes=--1", "lines=0-9", "bytes 0-9", "bytes=0-9,20-29", "bytes=0-9;x", "",
      "bytes=0-1-2",
    ])
  func ignored(text: String) {
    #expect(reply("Range: \(text)")?.head.status == .ok)
    #expect(reply("Range: \(text)")?.content == .whole)
  }

  @Test(
    "If-Range matches only a strong validator of the stored bytes",
    arguments: [
      ("\"a\"", true), ("W/\"a\"", false), ("\"b\"", false), ("a", false), (date(-9), true), (date(-8), false), ("", false),
      ("\"a\", \"b\"", false),
    ])
  func ifRange(validator: String, isRange: Bool) {
    let reply = reply("Range: bytes=0-9", "If-Range: \(validator)")
    #expect(reply?.head.status == (isRange ? .partialContent : .ok))
    #expect(reply?.content == (isRange ? .range(0..<10) : .whole))
  }

  @Test("a range of a body of unknown length gets the whole response, and one of an empty body gets a 416")
  func lengths() {
    #expect(reply("Range: bytes=0-9", length: nil)?.content == .whole)
    #expect(reply("Range: bytes=0-", length: 0)?.head.status == .rangeNotSatisfiable)
  }

  @Test("a stale response is revalidated with the range, and after a 304 the range is served from the cache")
  func stale() {
    var cache = CacheFixture()
    cache.length = 100
    _ = cache.load { _ in .success(.ok("ETag: \"a\"", "Cache-Control: max-age=1")) }
    cache.advance(5)
    cache.sent = []
    let outcome = cache.load(.page(.get, "Range: bytes=0-9")) { _ in .success(.head(304, "ETag: \"a\"")) }
    #expect(cache.sent.first?.headerFields[.range] == "bytes=0-9")
    #expect(cache.sent.first?.headerFields[.ifNoneMatch] == "\"a\"")
    #expect(outcome.reply?.content == .range(0..<10))
  }

  @Test("a 200 to a range request is stored as a whole response, and a 206 or 416 is only returned")
  func responses() {
    for (status, count) in [(200, 1), (206, 0), (416, 0)] {
      var cache = CacheFixture()
      let outcome = cache.load(.page(.get, "Range: bytes=0-9")) { _ in
        .success(.head(status, "ETag: \"a\"", "Content-Range: bytes 0-9/100", "Cache-Control: max-age=60"))
      }
      #expect(outcome.response?.status.code == status)
      #expect(cache.entries.count == count)
    }
  }
}
