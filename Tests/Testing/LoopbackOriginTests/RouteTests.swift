#if Origin
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Routes", .timeLimit(.minutes(30)))
struct RouteTests {
  @Test("a route responds with its bytes, its fields and the date of the given clock")
  func plain() async throws {
    try await withOrigin(now: { exampleDate }) { origin in
      // Given
      var fields = HTTPFields()
      fields.append(HTTPField(name: .setCookie, value: "a=1"))
      fields.append(HTTPField(name: .setCookie, value: "b=2"))
      fields[.cacheControl] = "max-age=60"
      origin.setRoute(
        "/a.png", Route(pattern(5000), contentType: "image/png", etag: "v1", lastModified: exampleDate - 60, fields: fields))

      // When
      let response = try await origin.connect().get("/a.png")

      // Then
      #expect(response.lines.first == "HTTP/1.1 200 OK")
      #expect(Data(response.body) == pattern(5000))
      #expect(response["Date"] == "Sun, 06 Nov 1994 08:49:37 GMT")
      #expect(response["Last-Modified"] == "Sun, 06 Nov 1994 08:48:37 GMT")
      #expect(response["Content-Type"] == "image/png")
      #expect(response["ETag"] == "\"v1\"")
      #expect(response["Content-Length"] == "5000")
      #expect(response["Cache-Control"] == "max-age=60")
      #expect(response.values("Set-Cookie") == ["a=1", "b=2"])
      #expect(response["Accept-Ranges"] == nil)
      #expect(response["Connection"] == nil)
    }
  }

  @Test("a field of the test replaces the origin's own field")
  func replacedFields() async throws {
    try await withOrigin { origin in
      origin.setRoute("/", Route(Data(), etag: "mine", fields: [.eTag: "odd", .date: "yesterday", .contentLength: "0"]))

      let response = try await origin.connect().get("/")

      #expect(response.values("ETag") == ["odd"])
      #expect(response.values("Date") == ["yesterday"])
      #expect(response.values("Content-Length") == ["0"])
    }
  }

  @Test("an unknown path gets a 404 with a short text and a date")
  func unknown() async throws {
    try await withOrigin { origin in
      let response = try await origin.connect().get("/none")

      #expect(response.status == 404)
      #expect(response.text == "nothing at /none\n")
      #expect(response["Date"] != nil)
    }
  }

  @Test("routes can be replaced and removed while a connection is open")
  func replacement() async throws {
    try await withOrigin { origin in
      let client = try await origin.connect()
      origin.setRoute("/a", Route(Data("one".utf8)))
      #expect(try await client.get("/a").text == "one")

      origin.setRoute("/a", Route(Data("two".utf8)))
      #expect(try await client.get("/a").text == "two")

      origin.removeRoute("/a")
      #expect(try await client.get("/a").status == 404)

      origin.setFallback { OriginResponse(text: "fallback \($0.path)") }
      #expect(try await client.get("/a").text == "fallback /a")

      origin.setFallback(nil)
      #expect(try await client.get("/a").status == 404)
    }
  }

  @Test("a route with a query matches that query only, and one without matches every query")
  func queries() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("any".utf8)))
      origin.setRoute("/a?x=1", Route(Data("one".utf8)))
      let client = try await origin.connect()

      #expect(try await client.get("/a?x=1").text == "one")
      #expect(try await client.get("/a?x=2").text == "any")
      #expect(try await client.get("/a").text == "any")
      #expect(origin.requests(for: "/a").map(\.query) == ["x=1", "x=2", nil])
    }
  }

  @Test("a path with special characters is equal in URL, route, counter and request")
  func encodedPaths() async throws {
    try await withOrigin { origin in
      origin.setRoute("/ä b.png", Route(Data("found".utf8)))

      #expect(origin.url("/ä b.png").absoluteString == "\(origin.baseURL.absoluteString)/%C3%A4%20b.png")
      #expect(origin.url("a?b=c%20d").absoluteString == "http://127.0.0.1:\(origin.port)/a?b=c%20d")
      let response = try await origin.connect().get("/%C3%A4%20b.png")
      #expect(response.text == "found")
      #expect(origin.counters(for: "/ä b.png").requests == 1)
    }
  }

  @Test("a closure gets method, target, fields and body, and its response is sent")
  func closure() async throws {
    try await withOrigin { origin in
      origin.setRoute(
        "/echo",
        Route { request in
          let text = "\(request.method) \(request.target) \(request.fields[.accept] ?? "-") \(request.head.authority ?? "-") "
          return OriginResponse(Data(text.utf8) + request.body, status: .created)
        })

      let response = try await origin.connect()
        .request("PUT", "/echo?q=1", ["Accept: a/b", "Content-Length: 5"], body: "hello")

      #expect(response.status == 201)
      #expect(response.text == "PUT /echo?q=1 a/b test hello")
    }
  }

  @Test(
    "HEAD gets the head of GET and no body, regardless of the framing", arguments: [OriginFraming.contentLength, .chunked(of: 4)])
  func head(framing: OriginFraming) async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(pattern(10), etag: "v1", delivery: .init(framing: framing)))
      let client = try await origin.connect()

      let head = try await client.request("HEAD", "/a")
      let get = try await client.get("/a")

      #expect(head.status == 200 && head["ETag"] == "\"v1\"" && head.body.isEmpty)
      #expect(head["Content-Length"] == get["Content-Length"] && head["Transfer-Encoding"] == get["Transfer-Encoding"])
      #expect(Data(get.body) == pattern(10))
    }
  }

  @Test("a redirect has a status and a Location", arguments: [HTTPResponse.Status.movedPermanently, .found, .temporaryRedirect])
  func redirect(status: HTTPResponse.Status) async throws {
    try await withOrigin { origin in
      origin.setRoute("/old", .redirect(to: "/new?x#y", status: status))

      let response = try await origin.connect().get("/old")

      #expect(response.status == status.code)
      #expect(response["Location"] == "/new?x#y")
    }
  }

  @Test("a protected path returns a 401 with a challenge until the request has the credential")
  func credential() async throws {
    try await withOrigin { origin in
      origin.setRoute("/p", Route(Data("in".utf8), credential: OriginCredential(user: "user", password: "secret", realm: "r")))
      let client = try await origin.connect()

      let refused = try await client.get("/p")
      let wrong = try await client.get("/p", "Authorization: Basic d3Jvbmc6d3Jvbmc=")
      let right = try await client.get("/p", "Authorization: Basic dXNlcjpzZWNyZXQ=")

      #expect(refused.status == 401 && wrong.status == 401)
      #expect(refused["WWW-Authenticate"] == "Basic realm=\"r\", charset=\"UTF-8\"")
      #expect(right.status == 200 && right.text == "in")
    }
  }

  @Test("an interim response precedes the final one", arguments: ["HTTP/1.1", "HTTP/1.0"])
  func interim(version: String) async throws {
    try await withOrigin { origin in
      let hint = OriginDelivery.Interim(fields: [.cacheControl: "no-store"])
      origin.setRoute("/a", Route(Data("final".utf8), delivery: .init(interim: [hint])))
      let client = try await origin.connect()

      try await client.send("GET /a \(version)\r\nHost: a\r\n\r\n")

      if version == "HTTP/1.1" {
        #expect(try await client.head() == "HTTP/1.1 103 Early Hints\r\nCache-Control: no-store\r\n\r\n")
      }
      let final = try await client.response()
      #expect(final.status == 200 && final.text == "final")
    }
  }

  @Test("responses are given in turn, and the last one is repeated", arguments: [0, 1, 3])
  func turns(count: Int) async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(inTurn: (0..<count).map { OriginResponse(text: "\($0)") }))
      let client = try await origin.connect()

      for turn in 0..<5 {
        let response = try await client.get("/a")
        #expect(response.status == 200 && response.text == (count == 0 ? "" : "\(min(turn, count - 1))"))
      }
    }
  }
}
#endif
