import CacheCore
import CacheTesting
import ETagValidation
import Foundation
import HTTPServing
import HTTPTypes
import LoopbackOrigin
import NIOCore
import Testing

@testable import GatewayServer

@Suite("The gateway's cache")
struct CachingTests {
  private static let hour: HTTPFields = [.cacheControl: "max-age=3600"]

  /// Runs a gateway with a memory cache, and with a disk cache if there is a folder.
  private static func run(
    mode: CacheMode = .shared, folder: String? = nil, _ body: (GatewayFixture, OriginServer) async throws -> Void
  ) async throws {
    try await GatewayFixture.run({ $0.cache = CacheSettings(mode: mode, folder: folder) }, body)
  }

  @Test("a fresh response is served again on any connection without a request, with Age and Cache-Status")
  func hit() async throws {
    for framing in [OriginFraming.contentLength, .chunked(of: 3)] {
      try await Self.run { gateway, origin in
        let delivery = OriginDelivery(framing: framing)
        origin.setRoute("/a", Route(Data("body".utf8), contentType: "text/x", fields: Self.hour, delivery: delivery))
        let first = try await gateway.get("/a")
        #expect(first["cache-status"]?.contains("fwd=uri-miss") == true)
        for _ in 0..<3 {
          let again = try await gateway.get("/a")
          #expect(again.body == "body")
          #expect(again["age"] != nil)
          #expect(again["content-type"] == "text/x")
          #expect(again["cache-status"]?.contains("hit") == true)
          #expect(again["date"] == first["date"])
        }
        let head = try await gateway.ask("HEAD", "/a")
        #expect(head.status == 200)
        #expect(origin.requests.count == 1)
      }
    }
  }

  @Test("an HTTP/1.0 client without Host shares the entries of the origin's host, for GET and for PURGE")
  func hostless() async throws {
    try await Self.run { gateway, origin in
      origin.setRoute("/a", Route(Data("body".utf8), fields: Self.hour))
      for (request, status, isHit) in [
        ("GET /a HTTP/1.0", 200, false), ("GET /a HTTP/1.0", 200, true),
        ("GET /a HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)", 200, true), ("PURGE /a HTTP/1.0", 200, false),
        ("PURGE /a HTTP/1.0", 404, false),
      ] {
        let client = try await gateway.client()
        try await client.send("\(request)\r\n\r\n")
        let answer = try await client.answer()
        #expect(answer.status == status, "\(request)")
        #expect((answer["cache-status"]?.contains("hit") == true) == isHit, "\(request)")
        client.close()
      }
      #expect(origin.requests.count == 1)
    }
  }

  @Test("a large response is stored when its client has received all of it")
  func large() async throws {
    let body = Data(repeating: UInt8(ascii: "x"), count: 3 << 20)
    try await Self.run { gateway, origin in
      origin.setRoute("/a", Route(body, fields: Self.hour))
      for _ in 0..<3 {
        let answer = try await gateway.get("/a")
        #expect(answer.body.utf8.count == body.count)
      }
      #expect(origin.requests.count == 1)
    }
  }

  @Test("a stale response is revalidated with the client's own fields, and is served after a 304")
  func revalidated() async throws {
    try await Self.run { gateway, origin in
      origin.setRoute("/a", Route(Data("body".utf8), etag: "v1", fields: [.cacheControl: "no-cache"]))
      _ = try await gateway.get("/a", "X-Mine: 1")
      let again = try await gateway.get("/a", "X-Mine: 2")
      #expect(again.status == 200)
      #expect(again.body == "body")
      #expect(origin.requests.last?.fields[.ifNoneMatch] == "\"v1\"")
      #expect(origin.requests.last?.fields.first { $0.name.rawName == "X-Mine" }?.value == "2")
      #expect(origin.counters.notModified == 1)
    }
  }

  @Test("a response without a body is stored")
  func bodiless() async throws {
    try await Self.run { gateway, origin in
      origin.setRoute("/a", Route(OriginResponse(fields: Self.hour, status: .noContent)))
      for _ in 0..<2 {
        let answer = try await gateway.get("/a")
        #expect(answer.status == 204)
      }
      #expect(origin.requests.count == 1)
    }
  }

  @Test(
    "all spellings of a host share one entry, and the origin gets the normal form",
    arguments: ["EXAMPLE.Com", "example.com:80", "example.com:", "EX%41MPLE.com:80"], [true, false])
  func hostSpellings(_ host: String, isCached: Bool) async throws {
    let origin = try await RawOrigin.start(
      answer: "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n")
    try await GatewayFixture.run(inFrontOf: origin.port) {
      $0.cache = isCached ? CacheSettings() : nil
      $0.forwards = true
    } _: { gateway in
      let client = try await gateway.client()
      for (target, host) in [("/a", host), ("http://\(host)/a", "b"), ("/a", "example.com")] {
        try await client.send("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        #expect(try await client.answer().status == 200)
      }
      client.close()
    }
    #expect(origin.heads.count == (isCached ? 1 : 3))
    for head in origin.heads {
      #expect(head.hasPrefix("GET /a HTTP/1.1\r\nHost: example.com\r\n"), "\(head)")
      #expect(head.contains("\r\nX-Forwarded-Host: example.com\r\n"), "\(head)")
    }
    await origin.stop()
  }

  @Test("different hosts have different entries")
  func hosts() async throws {
    try await Self.run { gateway, origin in
      origin.setFallback { OriginResponse(text: $0.head.authority ?? "", fields: Self.hour) }
      for host in ["a", "b", "a"] {
        let answer = try await gateway.get("http://\(host)/")
        #expect(answer.body == host)
      }
      #expect(origin.requests.count == 2)
    }
  }

  @Test("a private cache stores private responses, and a shared cache does not")
  func modes() async throws {
    for (mode, requests) in [(CacheMode.shared, 2), (.private, 1)] {
      try await Self.run(mode: mode) { gateway, origin in
        origin.setRoute("/a", Route(Data("a".utf8), fields: [.cacheControl: "private, max-age=3600"]))
        for _ in 0..<2 { _ = try await gateway.get("/a") }
        #expect(origin.requests.count == requests)
      }
    }
  }

  @Test("PURGE removes the stored response")
  func purge() async throws {
    try await Self.run { gateway, origin in
      origin.setRoute("/a", Route(Data("a".utf8), fields: Self.hour))
      _ = try await gateway.get("/a")
      #expect(try await gateway.ask("PURGE", "/a").status == 200)
      #expect(try await gateway.ask("PURGE", "/a").status == 404)
      _ = try await gateway.get("/a")
      #expect(origin.requests.count == 2)
    }
  }

  @Test("truncated, invalid and missing responses are not stored")
  func failures() async throws {
    try await Self.run { gateway, origin in
      let broken: [OriginDelivery] = [
        OriginDelivery(fault: .cut(afterBodyBytes: 2)), OriginDelivery(framing: .chunked(of: 2), fault: .cut(afterBodyBytes: 2)),
        .fault(.closeBeforeHead), .fault(.garbage),
        .fault(
          .raw(
            Data(
              "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=3600\r\nContent-Range: bytes 0-0/4\r\nContent-Length: 1\r\n\r\nb"
                .utf8))),
        .fault(.raw(Data("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=3600\r\n\r\n".utf8))),
      ]
      for delivery in broken {
        origin.setRoute("/a", Route(Data("body".utf8), fields: Self.hour, delivery: delivery))
        let client = try await gateway.client()
        try await client.send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        _ = await client.untilClosed()
      }
      let before = origin.requests.count
      origin.setRoute("/a", Route(Data("good".utf8), fields: Self.hour))
      let answer = try await gateway.get("http://h/a")
      #expect(answer.body == "good")
      #expect(origin.requests.count == before + 1)
    }
  }

  @Test(
    "without an origin, the response is the stored one if allowed, 504 if its use is forbidden, and 502 if nothing is stored"
  )
  func gone() async throws {
    try await Self.run { gateway, origin in
      origin.setRoute("/may", Route(Data("kept".utf8), fields: [.cacheControl: "max-age=0, stale-if-error=60"]))
      let forbidding = ["/must": "max-age=0, must-revalidate", "/proxy": "max-age=0, proxy-revalidate", "/shared": "s-maxage=0"]
      for (path, rule) in forbidding { origin.setRoute(path, Route(Data("kept".utf8), fields: [.cacheControl: rule])) }
      for path in ["/may"] + forbidding.keys { _ = try await gateway.get(path) }
      await origin.stop()
      let may = try await gateway.get("/may")
      #expect(may.status == 200)
      #expect(may.body == "kept")
      for path in forbidding.keys {
        let answer = try await gateway.get(path)
        #expect(answer.status == 504)
        #expect(answer["cache-status"] == "Etagere; detail=revalidationFailed")
      }
      let never = try await gateway.get("/never")
      #expect(never.status == 502)
    }
  }

  @Test("responses in the folder survive a restart of the gateway")
  func restart() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "gateway-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let origin = try await OriginServer.start()
    origin.setRoute("/a", Route(Data("a".utf8), fields: Self.hour))
    for _ in 0..<2 {
      try await GatewayFixture.run(inFrontOf: origin.port) {
        $0.cache = CacheSettings(folder: folder)
      } _: { gateway in
        let answer = try await gateway.get("http://h/a")
        #expect(answer.body == "a")
      }
    }
    #expect(origin.requests.count == 1)
    await origin.stop()
  }

  @Test("the status page shows hits, revalidations, bytes saved and entries")
  func status() async throws {
    try await GatewayFixture.run {
      ($0.cache, $0.status) = (CacheSettings(), HostAndPort(host: "127.0.0.1", port: 0))
    } _: { gateway, origin in
      origin.setRoute("/a", Route(Data("12345".utf8), fields: Self.hour))
      origin.setRoute("/b", Route(Data("123".utf8), etag: "v", fields: [.cacheControl: "no-cache"]))
      for path in ["/a", "/a", "/b", "/b"] { _ = try await gateway.get(path) }
      let status = try await RawClient.connect(try #require(gateway.statusPort))
      let (document, _) = try await status.document { $0.traffic.requests == 4 }
      #expect(document.mode == "shared")
      #expect(document.traffic.hits == 1)
      #expect(document.traffic.revalidations == 1)
      #expect(document.traffic.misses == 2)
      #expect(document.traffic.bytesSaved == 8)
      #expect(document.traffic.bytesSent == 16)
      #expect(document.store?.memoryEntries == 2)
    }
  }
}
