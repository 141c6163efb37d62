import CacheCore
import HTTPTypes
import Testing

@testable import CacheTransport

@Suite("Resumption plans")
struct ResumptionPlanTests {
  private let now = Timestamp(seconds: 1_767_225_600)
  private static let tagged: HTTPFields = [.eTag: #""v1""#, .contentLength: "1000", .contentType: "image/png"]

  private func made(
    _ changes: [HTTPField.Name: String?] = [:], request asked: DownloadRequest = request(), status: Int = 200,
    length: Int64? = 1_000
  ) -> ResumptionPlan? {
    var fields = Self.tagged
    for (name, value) in changes { fields[name] = value }
    let head = HTTPResponse(status: .init(code: status), headerFields: fields)
    return ResumptionPlan(request: asked, head: head, length: length, now: now)
  }

  @Test(
    "a plan needs a strong validator",
    arguments: [
      (#""v1""#, nil, nil, #""v1""#), (#"  "v1" "#, nil, nil, #""v1""#), (#""""#, nil, nil, #""""#),
      (#""a,b""#, nil, nil, #""a,b""#),
      (#"W/"v1""#, nil, nil, nil), ("v1", nil, nil, nil), (#""v1"#, nil, nil, nil), (#"""#, nil, nil, nil),
      (#""a", "b""#, nil, nil, nil),
      (#""a b""#, nil, nil, nil), ("", nil, nil, nil),
      // A date counts only without any tag, and if it is old enough by the response's own date.
      (nil, "Thu, 01 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 2026 00:01:00 GMT", "Thu, 01 Jan 2026 00:00:00 GMT"),
      (nil, "Thu, 01 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 2026 00:00:59 GMT", nil),
      (nil, "Thu, 01 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 2026 00:00:00 GMT", nil),
      (nil, "Thu, 01 Jan 2026 00:05:00 GMT", "Thu, 01 Jan 2026 00:00:00 GMT", nil),
      (nil, "Thu, 01 Jan 2026 00:00:00 GMT", nil, nil), (nil, "yesterday", "Thu, 01 Jan 2026 00:01:00 GMT", nil),
      (#"W/"v1""#, "Thu, 01 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 2026 00:01:00 GMT", nil), (nil, nil, nil, nil),
    ] as [(String?, String?, String?, String?)])
  func validators(_ tag: String?, _ modified: String?, _ date: String?, _ expected: String?) {
    #expect(made([.eTag: tag, .lastModified: modified, .date: date])?.validator.fieldValue == expected)
  }

  @Test("a plan is made only for the complete response to a GET, whose length and bytes are the resource's")
  func conditions() {
    #expect(made() != nil)
    #expect(made(request: request(method: .head)) == nil)
    #expect(made(request: request(method: .post)) == nil)
    #expect(made(request: request(body: ResourceBody(pattern(1)))) == nil)
    #expect(made(request: request(fields: [.range: "bytes=5-"])) == nil)
    for status in [201, 203, 206, 304, 404, 500] { #expect(made(status: status) == nil) }
    // An engine that decodes removes both.
    #expect(made([.contentLength: nil], length: nil) == nil)
    #expect(made(length: nil) == nil)
    #expect(made(length: 999) == nil)
    #expect(made([.contentLength: "0"], length: 0) == nil)
    #expect(made([.contentLength: "+1000"]) == nil)
    // An engine that does not decode leaves both, and a range then counts the same bytes.
    #expect(made([.contentEncoding: "gzip"])?.contentEncoding == "gzip")
  }

  @Test(
    "a plan respects a server without ranges",
    arguments: [("none", false), ("None", false), (" none ", false), ("bytes", true), ("bytes, none", false)])
  func acceptRanges(_ value: String, _ isPossible: Bool) {
    #expect((made([.acceptRanges: value]) != nil) == isPossible)
  }

  @Test("a plan requests the rest on the condition that nothing has changed")
  func rest() throws {
    let asked = request(fields: [
      .ifNoneMatch: #""old""#, .ifModifiedSince: "x", .accept: "image/*", .authorization: "Basic eA==",
    ])
    let rest = try #require(made(request: asked)).request(asked, from: 400).head.headerFields
    #expect(rest[.range] == "bytes=400-")
    #expect(rest[.ifRange] == #""v1""#)
    #expect(rest[.ifNoneMatch] == nil && rest[.ifModifiedSince] == nil)
    #expect(rest[.accept] == "image/*" && rest[.authorization] == "Basic eA==")
    #expect(rest[.acceptEncoding] == "identity")
    let own = request(fields: [.acceptEncoding: "gzip"])
    #expect(made(request: own)?.request(own, from: 1).head.headerFields[.acceptEncoding] == "gzip")
    #expect(made([.contentEncoding: "br"])?.request(asked, from: 1).head.headerFields[.acceptEncoding] == nil)
  }

  @Test(
    "a part is used only if it is exactly the requested one",
    arguments: [
      ("bytes 400-999/1000", 600, true), ("Bytes 400-999/1000", 600, true), ("bytes 401-999/1000", 599, false),
      ("bytes 399-999/1000", 601, false), ("bytes 400-998/1000", 599, false), ("bytes 400-999/1001", 600, false),
      ("bytes 400-999/*", 600, false), ("bytes 400-1000/1001", 601, false), ("bytes */1000", 600, false),
      ("items 400-999/1000", 600, false), ("bytes  400-999/1000", 600, false),
      ("bytes 400-999", 600, false), ("bytes=400-999/1000", 600, false), ("bytes 999-400/1000", 600, false),
      ("bytes 400-999/1000, bytes 0-1/1000", 600, false), ("bytes +400-999/1000", 600, false), ("bytes 400-999/1000", 599, false),
      ("bytes 400-999/1000", nil, false), ("bytes 400-9999999999999999999/1000", 600, false), (nil, 600, false), ("", 600, false),
    ] as [(String?, Int64?, Bool)])
  func parts(_ range: String?, _ length: Int64?, _ isTaken: Bool) throws {
    var fields: HTTPFields = [.eTag: #""v1""#]
    fields[.contentRange] = range
    let head = HTTPResponse(status: .partialContent, headerFields: fields)
    #expect((try #require(made()).judge(head, bodyLength: length, at: 400) == .append) == isTaken)
  }

  @Test("a part is used only with the validator and the coding of the first response")
  func partsOfOthers() throws {
    let plan = try #require(made())
    func judge(_ fields: HTTPFields) -> Bool {
      var fields = fields
      fields[.contentRange] = "bytes 400-999/1000"
      return plan.judge(HTTPResponse(status: .partialContent, headerFields: fields), bodyLength: 600, at: 400) == .append
    }
    #expect(judge([.eTag: #""v1""#]))
    #expect(!judge([.eTag: #""v2""#]))
    #expect(!judge([.eTag: #"W/"v1""#]))
    #expect(!judge([:]))
    #expect(!judge([.eTag: #""v1""#, .contentEncoding: "gzip"]))
    #expect(!judge([.eTag: #""v1""#, .contentType: "multipart/byteranges; boundary=x"]))
  }

  @Test("equal lines of a field are one, and different ones resume nothing", arguments: [true, false])
  func repeated(isEqual: Bool) throws {
    var fields: HTTPFields = [.eTag: #""v1""#, .contentLength: "1000"]
    fields.append(HTTPField(name: .eTag, value: isEqual ? #""v1""# : #""v2""#))
    let head = HTTPResponse(status: .ok, headerFields: fields)
    #expect((ResumptionPlan(request: request(), head: head, length: 1_000, now: now) != nil) == isEqual)
    fields[values: .contentRange] = ["bytes 400-999/1000", isEqual ? "bytes 400-999/1000" : "bytes 0-599/1000"]
    let part = HTTPResponse(status: .partialContent, headerFields: fields)
    #expect((try #require(made()).judge(part, bodyLength: 600, at: 400) == .append) == isEqual)
  }

  @Test("a plan with a date accepts a response with that date and no tag")
  func dates() throws {
    let date = "Thu, 01 Jan 2026 00:00:00 GMT"
    let plan = try #require(made([.eTag: nil, .lastModified: date, .date: "Thu, 01 Jan 2026 01:00:00 GMT"]))
    func judge(_ fields: HTTPFields) -> ResumptionPlan.Verdict {
      plan.judge(HTTPResponse(status: .ok, headerFields: fields), bodyLength: 1_000, at: 400)
    }
    #expect(judge([.lastModified: date]) == .skip)
    #expect(judge([.lastModified: date, .eTag: #""v1""#]) != .skip)
    #expect(judge([.lastModified: "Thu, 01 Jan 2026 00:00:01 GMT"]) != .skip)
    #expect(judge([:]) != .skip)
  }

  @Test("an unchanged complete response is skipped, and another one is not used")
  func wholes() throws {
    let plan = try #require(made())
    func judge(_ status: Int, _ fields: HTTPFields, _ length: Int64?) -> Bool {
      plan.judge(HTTPResponse(status: .init(code: status), headerFields: fields), bodyLength: length, at: 400) == .skip
    }
    #expect(judge(200, Self.tagged, 1_000))
    #expect(!judge(200, Self.tagged, nil))
    #expect(!judge(200, Self.tagged, 1_001))
    #expect(!judge(200, [.eTag: #"W/"v1""#], 1_000))
    #expect(!judge(200, [.eTag: #""v2""#], 1_000))
    #expect(!judge(200, [:], 1_000))
    #expect(!judge(200, [.eTag: #""v1""#, .contentEncoding: "gzip"], 1_000))
    for status in [201, 203, 204, 301, 304, 401, 404, 412, 416, 503] { #expect(!judge(status, Self.tagged, 1_000)) }
  }
}
