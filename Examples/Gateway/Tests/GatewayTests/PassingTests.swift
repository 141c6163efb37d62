import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@testable import GatewayServer

@Suite("Forwarding by the gateway")
struct PassingTests {
  @Test(
    "every method is forwarded, known or not",
    arguments: ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY", "M-SEARCH", "FROBNICATE", "get"])
  func methods(method: String) async throws {
    let origin = try await RawOrigin.start(answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    try await GatewayFixture.run(inFrontOf: origin.port) { gateway in
      let answer = try await gateway.ask(method, "/a")
      #expect(answer.status == 200)
      #expect(answer.body == "ok")
    }
    #expect(origin.heads.map { $0.prefix { $0 != " " } } == [method[...]])
    await origin.stop()
  }

  @Test("a request's target and fields are forwarded unchanged, and only framing fields are added")
  func request() async throws {
    let origin = try await RawOrigin.start(answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    try await GatewayFixture.run(inFrontOf: origin.port) { gateway in
      _ = try await gateway.get(
        "/b/../a%2fb//c.png?q=1&q=%20&&x", "X-B: 2", "x-a: 1", "X-B: 3, 4", "Cookie: a=b", "Cookie: c=d",
        "Accept-Language: d\u{E4}", "Connection: keep-alive, X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5", "TE: trailers",
        "Trailer: T", "Upgrade: websocket", "Proxy-Authorization: Basic x", "Proxy-Connection: keep-alive")
    }
    let lines = origin.heads.first?.components(separatedBy: "\r\n")
    #expect(
      lines == [
        "GET /b/../a%2fb//c.png?q=1&q=%20&&x HTTP/1.1", "Host: shop.example", "X-B: 2", "x-a: 1", "X-B: 3, 4", "Cookie: a=b",
        "Cookie: c=d", "Accept-Language: d\u{E4}",
      ])
    await origin.stop()
  }

  @Test(
    "a target is forwarded unchanged, even with characters that are invalid in a URL",
    arguments: [
      "/a|b", "/{x}", "/a^b", "/[x]", "/a\"b", "/<a>", "/a\\b", "/`", "/a?filter[x]=1|2", "/a?", "/?", "//h/x", "/a;b=c", "/%",
      "/%zz", "/a?%",
      "/:80", "/..", "/./a", "/a?b?c", "/@x:y@z/", "/%7c%7C", "/~",
    ])
  func targets(target: String) async throws {
    let origin = try await RawOrigin.start(answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    try await GatewayFixture.run(inFrontOf: origin.port) { gateway in
      _ = try await gateway.get(target)
      _ = try await gateway.ask("PUT", target, body: "x")
    }
    #expect(origin.heads.map { $0.split(separator: " ")[1] } == [target[...], target[...]])
    #expect(!origin.heads.joined().lowercased().contains("etagere"))
    await origin.stop()
  }

  @Test(
    "interim responses are forwarded to clients that know them, without fields of the connection, and are not stored",
    arguments: [false, true])
  func interim(isCached: Bool) async throws {
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\nX-Hint: 1\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n"
    let origin = try await RawOrigin.start(
      answer: "HTTP/1.1 100 Continue\r\n\r\n\(hint)HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok")
    try await GatewayFixture.run(inFrontOf: origin.port) {
      $0.cache = isCached ? CacheSettings() : nil
    } _: { gateway in
      let client = try await RawClient.connect(gateway.port)
      for (target, isHit) in [("/a", false), ("/a", isCached), ("/b", false)] {
        try await client.send("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n")
        if !isHit {
          let interim = try await client.answer()
          #expect(interim.statusLine == "HTTP/1.1 103 Early Hints")
          #expect(interim.fields.map { "\($0.name): \($0.value)" } == ["Link: <a>", "X-Hint: 1"])
        }
        let answer = try await client.answer()
        #expect(answer.status == 200 && answer.body == "ok" && answer["x-hint"] == nil && answer["link"] == nil)
        #expect((answer["age"] != nil) == isHit)
      }
      client.close()
      let old = try await RawClient.connect(gateway.port)
      try await old.send("GET /c HTTP/1.0\r\nHost: h\r\n\r\n")
      #expect(try await old.answer().status == 200)
      old.close()
    }
    #expect(origin.heads.count == (isCached ? 3 : 4))
    await origin.stop()
  }

  @Test("a response's fields keep their order, repetitions and spelling, and fields about the connection are dropped")
  func answerFields() async throws {
    let origin = try await RawOrigin.start(
      answer: "HTTP/1.1 200 OK\r\nX-b: 1\r\nset-cookie: a=1\r\nETag: \"x\"\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n"
        + "Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nTrailer: T\r\nX-B: \u{FC}\r\n\r\nok"
    )
    try await GatewayFixture.run(inFrontOf: origin.port) { gateway in
      let answer = try await gateway.get("/")
      #expect(answer.statusLine == "HTTP/1.1 200 OK")
      #expect(
        answer.fields.map { "\($0.name): \($0.value)" } == [
          "X-b: 1", "set-cookie: a=1", "ETag: \"x\"", "Set-Cookie: b=2", "Content-Length: 2", "X-B: \u{FC}",
        ])
      #expect(answer.body == "ok")
    }
    await origin.stop()
  }

  @Test(
    "every final status is forwarded",
    arguments: [
      200, 201, 203, 226, 299, 300, 301, 302, 307, 308, 400, 401, 402, 404, 410, 418, 429, 451, 499, 500, 503, 511, 599, 600, 999,
    ])
  func statuses(status: Int) async throws {
    try await GatewayFixture.run { gateway, origin in
      let location: HTTPFields = [.location: "/elsewhere"]
      origin.setRoute("/a", Route(OriginResponse(Data("body".utf8), fields: location, status: .init(code: status))))
      let answer = try await gateway.get("/a")
      #expect(answer.status == status)
      #expect(answer["location"] == "/elsewhere")
      #expect(answer.body == "body")
      #expect(origin.requests.count == 1)
    }
  }

  @Test("responses to HEAD keep Content-Length, and 204 and 304 have no body")
  func bodiless() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(Data("body".utf8), contentType: "text/plain", etag: "v1"))
      origin.setRoute("/none", Route(OriginResponse(status: .noContent)))
      let client = try await gateway.client()
      try await client.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n")
      let head = try await client.answer(to: "HEAD")
      #expect(head["content-length"] == "4")
      try await client.send("GET /none HTTP/1.1\r\nHost: h\r\n\r\n")
      let none = try await client.answer()
      #expect(none.status == 204)
      #expect(none["content-length"] == nil)
      #expect(none["transfer-encoding"] == nil)
      try await client.send("GET /a HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"v1\"\r\n\r\n")
      #expect(try await client.answer().status == 304)
      try await client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await client.answer().body == "body")
    }
  }

  @Test("a body without a length is sent in chunks, or until the connection closes to an HTTP/1.0 client")
  func chunked() async throws {
    try await GatewayFixture.run { gateway, origin in
      let delivery = OriginDelivery.chunked(of: 3)
      origin.setRoute("/a", Route(OriginResponse(Data("0123456789".utf8), delivery: delivery)))
      let answer = try await gateway.get("/a")
      #expect(answer["transfer-encoding"] == "chunked")
      #expect(answer["content-length"] == nil)
      #expect(answer.body == "0123456789")
      let client = try await gateway.client()
      try await client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
      let text = await client.untilClosed()
      #expect(text.hasSuffix("Connection: close\r\n\r\n0123456789"))
      #expect(!text.lowercased().contains("transfer-encoding"))
    }
  }

  @Test("an HTTP/1.0 client keeps its connection if it sends keep-alive and the length is known")
  func keepAlive10() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(text: "a")))
      let client = try await gateway.client()
      for _ in 0..<2 {
        try await client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        let answer = try await client.answer()
        #expect(answer["connection"] == "keep-alive")
        #expect(answer.body == "a")
      }
      // Without Host, the origin gets its own.
      #expect(origin.requests.last?.head.authority == "127.0.0.1:\(origin.port)")
    }
  }

  @Test("encoded bodies and their fields are forwarded unchanged")
  func contentCoding() async throws {
    try await GatewayFixture.run { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(Data("not really gzip".utf8), fields: [.contentEncoding: "gzip"])))
      let answer = try await gateway.get("/a", "Accept-Encoding: gzip")
      #expect(answer["content-encoding"] == "gzip")
      #expect(answer.body == "not really gzip")
      #expect(origin.requests.first?.fields[.acceptEncoding] == "gzip")
    }
  }

  @Test("the origin gets the client's Host, or its own with --host origin")
  func host() async throws {
    for keeps in [true, false] {
      try await GatewayFixture.run {
        $0.keepsHost = keeps
      } _: { gateway, origin in
        _ = try await gateway.get("/a")
        _ = try await gateway.get("http://other.example:81/a")
        let own = "127.0.0.1:\(origin.port)"
        #expect(origin.requests.map(\.head.authority) == (keeps ? ["shop.example", "other.example:81"] : [own, own]))
      }
    }
  }

  @Test("Via and X-Forwarded fields are added after existing ones if the options say so")
  func added() async throws {
    try await GatewayFixture.run {
      ($0.via, $0.forwards) = ("cache", true)
    } _: { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(text: "a", fields: [.via: "1.0 before"])))
      let answer = try await gateway.get("/a", "Via: 1.1 first", "X-Forwarded-For: 192.0.2.1")
      #expect(answer[all: "via"] == ["1.0 before", "1.1 cache"])
      let fields = try #require(origin.requests.first?.fields)
      #expect(fields[values: .via] == ["1.1 first", "1.1 cache"])
      #expect(fields.filter { $0.name.canonicalName == "x-forwarded-for" }.map(\.value) == ["192.0.2.1", "127.0.0.1"])
      #expect(fields.first { $0.name.canonicalName == "x-forwarded-host" }?.value == "shop.example")
      #expect(fields.first { $0.name.canonicalName == "x-forwarded-proto" }?.value == "http")
    }
  }

  @Test("the gateway responds to OPTIONS * and to Max-Forwards: 0 itself (RFC 9110 §7.6.2, §9.3.7)")
  func aboutTheGateway() async throws {
    try await GatewayFixture.run { gateway, origin in
      #expect(try await gateway.ask("OPTIONS", "*").status == 200)
      #expect(try await gateway.ask("OPTIONS", "/a", ["Max-Forwards: 0"]).status == 200)
      #expect(try await gateway.ask("TRACE", "/a", ["Max-Forwards: 0"]).status == 405)
      #expect(try await gateway.ask("TRACE", "/a", ["Max-Forwards: x"]).status == 400)
      #expect(try await gateway.ask("TRACE", "/a", body: "b").status == 400)
      #expect(origin.requests.isEmpty)
      _ = try await gateway.ask("OPTIONS", "/a", ["Max-Forwards: 2"])
      _ = try await gateway.get("/b", "Max-Forwards: 0")
      #expect(origin.requests.map { $0.fields[.maxForwards] } == ["1", "0"])
    }
  }
}
