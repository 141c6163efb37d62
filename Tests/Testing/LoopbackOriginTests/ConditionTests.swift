#if Origin
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Conditional and range requests", .timeLimit(.minutes(30)))
struct ConditionTests {
  private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
  private static let earlier = "Sun, 06 Nov 1994 08:49:36 GMT"
  private static let later = "Sun, 06 Nov 1994 08:49:38 GMT"

  @Test(
    "If-None-Match may be a list or a star, and tags are compared weakly",
    arguments: [
      (OriginETag.strong("v1"), "\"v1\"", 304), ("v1", "W/\"v1\"", 304), (.weak("v1"), "\"v1\"", 304),
      (.weak("v1"), "W/\"v1\"", 304),
      ("v1", "\"v0\", W/\"x\", \"v1\"", 304), ("v1", "*", 304), (nil, "*", 304), ("a,b", "\"a,b\"", 304), ("v1", "\"v2\"", 200),
      ("v1", "v1", 200), (nil, "\"v1\"", 200), ("v1", "", 200),
    ] as [(OriginETag?, String, Int)])
  func entityTags(etag: OriginETag?, condition: String, status: Int) async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("body".utf8), etag: etag))

      let response = try await origin.connect().get("/a", "If-None-Match: \(condition)")

      #expect(response.status == status)
      #expect(response.text == (status == 200 ? "body" : ""))
    }
  }

  @Test(
    "If-Modified-Since is used only without If-None-Match",
    arguments: [
      (["If-Modified-Since: \(date)"], 304), (["If-Modified-Since: \(later)"], 304), (["If-Modified-Since: \(earlier)"], 200),
      (["If-Modified-Since: nonsense"], 200), (["If-Modified-Since: \(date)", "If-None-Match: \"other\""], 200),
      (["If-Modified-Since: \(earlier)", "If-None-Match: \"v1\""], 304), ([], 200),
    ] as [([String], Int)])
  func dates(fields: [String], status: Int) async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("body".utf8), etag: "v1", lastModified: exampleDate + 0.5))

      let response = try await origin.connect().request("GET", "/a", fields)

      #expect(response.status == status)
    }
  }

  @Test("several If-None-Match fields are one list")
  func repeatedLines() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("body".utf8), etag: "v1"))

      let response = try await origin.connect().get("/a", "If-None-Match: \"v0\"", "If-None-Match: \"v1\"")

      #expect(response.status == 304)
    }
  }

  @Test("a 304 repeats validators, Date, Cache-Control and the test's fields, and no field that describes content")
  func notModified() async throws {
    try await withOrigin(now: { exampleDate }) { origin in
      // Given
      origin.setRoute(
        "/a",
        Route(
          Data("body".utf8), contentType: "text/css", etag: .weak("v1"), lastModified: exampleDate,
          fields: [.cacheControl: "max-age=5", .vary: "Accept", .contentLanguage: "fr", .contentLocation: "/b", .age: "3"]))
      let client = try await origin.connect()

      // When
      let response = try await client.get("/a", "If-None-Match: \"v1\"")

      // Then
      #expect(response.lines.first == "HTTP/1.1 304 Not Modified")
      #expect(response["ETag"] == "W/\"v1\"" && response["Last-Modified"] == Self.date && response["Date"] == Self.date)
      #expect(response["Cache-Control"] == "max-age=5" && response["Vary"] == "Accept" && response["Content-Location"] == "/b")
      #expect(response["Age"] == "3")
      #expect(response["Content-Type"] == nil && response["Content-Length"] == nil && response["Content-Language"] == nil)
      // No body byte follows, so the next response is read from its first byte.
      #expect(try await client.get("/a").text == "body")
    }
  }

  @Test(
    "conditions are evaluated only for GET and HEAD of a 200",
    arguments: [("GET", 200, 304), ("HEAD", 200, 304), ("POST", 200, 200), ("GET", 404, 404), ("GET", 500, 500)])
  func scope(method: String, status: Int, expected: Int) async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("body".utf8), etag: "v1", status: .init(code: status)))

      let response = try await origin.connect().request(method, "/a", ["If-None-Match: \"v1\""])

      #expect(response.status == expected)
    }
  }

  @Test("an origin can ignore conditions")
  func ignored() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(OriginResponse(Data("body".utf8), etag: "v1", honorsConditions: false)))

      let response = try await origin.connect().get("/a", "If-None-Match: \"v1\"")

      #expect(response.text == "body")
    }
  }

  @Test("conditions apply to a closure's response too, and its own 304 has no body")
  func closures() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route { _ in OriginResponse(text: "body", etag: "v1") })
      origin.setRoute("/b", Route { _ in OriginResponse(text: "never sent", status: .notModified, etag: "v1") })
      let client = try await origin.connect()

      #expect(try await client.get("/a", "If-None-Match: \"v1\"").status == 304)
      let own = try await client.get("/b")
      #expect(own.status == 304 && own["Content-Length"] == nil)
      #expect(try await client.get("/a").text == "body")
      #expect(origin.counters.notModified == 2)
    }
  }

  @Test(
    "a single range is supported if the route allows it",
    arguments: [
      ("bytes=2-4", 206, "234", "bytes 2-4/10"), ("bytes=8-", 206, "89", "bytes 8-9/10"),
      ("bytes=-1", 206, "9", "bytes 9-9/10"),
      ("bytes=10-", 416, "", "bytes */10"), ("bytes=0-1,3-4", 200, "0123456789", nil), ("nonsense", 200, "0123456789", nil),
    ] as [(String, Int, String, String?)])
  func ranges(range: String, status: Int, body: String, contentRange: String?) async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("0123456789".utf8), etag: "v1", acceptsRanges: true))

      let response = try await origin.connect().get("/a", "Range: \(range)")

      #expect(response.status == status && response.text == body)
      #expect(response["Content-Range"] == contentRange)
      #expect(response["Accept-Ranges"] == "bytes" && response["ETag"] == "\"v1\"")
    }
  }

  @Test("a range is ignored if the route does not allow it, and for HEAD")
  func rangesOff() async throws {
    try await withOrigin { origin in
      origin.setRoute("/off", Route(Data("0123456789".utf8)))
      origin.setRoute("/on", Route(Data("0123456789".utf8), acceptsRanges: true))
      let client = try await origin.connect()

      #expect(try await client.get("/off", "Range: bytes=2-4").status == 200)
      let head = try await client.request("HEAD", "/on", ["Range: bytes=2-4"])
      #expect(head.status == 200 && head["Content-Length"] == "10")
    }
  }

  @Test(
    "If-Range allows a range only for the same strong tag or the same date",
    arguments: [
      (OriginETag.strong("v1"), "\"v1\"", 206), ("v1", "\"v2\"", 200), ("v1", "W/\"v1\"", 200), (.weak("v1"), "W/\"v1\"", 200),
      (.weak("v1"), "\"v1\"", 200), ("v1", date, 206), ("v1", earlier, 200), ("v1", later, 200), (nil, "\"v1\"", 200),
    ] as [(OriginETag?, String, Int)])
  func ifRange(etag: OriginETag?, condition: String, status: Int) async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("0123456789".utf8), etag: etag, lastModified: exampleDate, acceptsRanges: true))

      let response = try await origin.connect().get("/a", "Range: bytes=2-", "If-Range: \(condition)")

      #expect(response.status == status)
    }
  }
}
#endif
