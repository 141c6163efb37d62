#if Gateway
import CacheCore
import CacheTesting
import ETagValidation
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@testable import Gateway

@Suite("The gateway as a cache")
struct CachingTests {
  private static func fresh(_ text: String, _ more: HTTPFields = [:]) -> Route {
    var fields: HTTPFields = [.cacheControl: "max-age=600"]
    for field in more { fields.append(field) }
    return Route(OriginAnswer(text: text, etag: "1", fields: fields))
  }

  @Test(
    "the second client gets the stored answer with its age, and the origin is asked once",
    arguments: [CacheMode.private, .shared])
  func hit(mode: CacheMode) async throws {
    try await GatewayFixture.run {
      $0.cache = CacheSettings(mode: mode)
      $0.status = HostAndPort(host: "127.0.0.1", port: 0)
    } _: { gateway, origin in
      origin.setRoute("/a", Self.fresh("a body"))
      let first = try await gateway.get("/a")
      #expect(first.status == 200 && first.body == "a body" && first["age"] == nil)
      #expect(first["cache-status"]?.hasPrefix("Etagere;fwd=uri-miss;") == true)
      let second = try await gateway.get("/a")
      #expect(second.body == "a body" && second["age"] != nil)
      #expect(second["cache-status"]?.hasPrefix("Etagere;hit;ttl=") == true)
      #expect(try await gateway.get("/a", "If-None-Match: \"1\"").status == 304)
      let part = try await gateway.get("/a", "Range: bytes=2-3")
      #expect(part.status == 206 && part.body == "bo" && part["content-range"] == "bytes 2-3/6")
      #expect(try await gateway.ask("HEAD", "/a")["content-length"] == "6")
      #expect(origin.requests(for: "/a").count == 1)

      let status = try await RawClient.connect(try #require(gateway.statusPort))
      try await status.send("GET /status.json HTTP/1.1\r\nHost: h\r\n\r\n")
      let document = try JSONDecoder().decode(StatusDocument.self, from: Data(try await status.answer().body.utf8))
      #expect(document.mode == mode.rawValue && document.traffic.hits == 4 && document.traffic.misses == 1)
      #expect(document.traffic.bytesSaved == 8 && document.store?.memoryEntries ?? 0 > 0)
    }
  }

  @Test("a stale answer is asked about with its tag, and the client's fields go along")
  func revalidated() async throws {
    try await GatewayFixture.run {
      $0.cache = CacheSettings()
    } _: { gateway, origin in
      origin.setRoute("/a", Route(OriginAnswer(text: "a body", etag: "1", fields: [.cacheControl: "no-cache"])))
      _ = try await gateway.get("/a")
      let second = try await gateway.get("/a", "X-Client: 7")
      #expect(second.status == 200 && second.body == "a body")
      #expect(second["cache-status"]?.contains("fwd=stale;fwd-status=304") == true)
      let asked = try #require(origin.requests(for: "/a").last)
      #expect(asked.head.headerFields[.ifNoneMatch] == "\"1\"" && asked.head.headerFields[try #require(.init("X-Client"))] == "7")
    }
  }

  @Test("PURGE forgets an answer: 200, and 404 where there is none")
  func purge() async throws {
    try await GatewayFixture.run {
      $0.cache = CacheSettings()
    } _: { gateway, origin in
      origin.setRoute("/a", Self.fresh("a body"))
      _ = try await gateway.get("/a")
      #expect(try await gateway.ask("PURGE", "/a").status == 200)
      #expect(try await gateway.ask("PURGE", "/a").status == 404)
      #expect(try await gateway.get("/a")["cache-status"]?.contains("fwd=uri-miss") == true)
    }
  }

  @Test("what is in the folder outlives the gateway")
  func restart() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/etagere-gateway-\(Revision.mint())"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let origin = try await OriginServer.start()
    origin.setRoute("/a", Self.fresh("a body", [.vary: "Cookie"]))
    for _ in 0..<2 {
      try await GatewayFixture.run(inFrontOf: origin.port) {
        $0.cache = CacheSettings(folder: folder)
      } _: { gateway in
        #expect(try await gateway.get("/a", "Cookie: s=1").body == "a body")
      }
    }
    #expect(origin.requests(for: "/a").count == 1)
    await origin.stop()
  }

  @Test("an origin that breaks off is answered for with what is stored, where that may be; nothing is asked twice")
  func brokenOrigin() async throws {
    try await GatewayFixture.run {
      $0.cache = CacheSettings()
    } _: { gateway, origin in
      origin.setRoute("/may", Route(OriginAnswer(text: "old", etag: "1", fields: [.cacheControl: "max-age=0"])))
      origin.setRoute("/must", Route(OriginAnswer(text: "old", etag: "1", fields: [.cacheControl: "max-age=0, must-revalidate"])))
      for path in ["/may", "/must"] {
        _ = try await gateway.get(path)
        origin.setRoute(path, Route(OriginAnswer(text: "never"), delivery: .fault(.resetBeforeHead)))
      }
      let stale = try await gateway.get("/may")
      #expect(stale.status == 200 && stale.body == "old")
      #expect(try await gateway.get("/must").status == 502)
      #expect(origin.requests(for: "/must").count == 2)
    }
  }

  @Test("what the command says is what is stored")
  func options() throws {
    func cache(_ arguments: String...) throws -> CacheSettings? {
      try GatewayCommand.parse(["--origin", "http://h"] + arguments).settings().cache
    }
    #expect(try cache()?.mode == .shared)
    #expect(try cache("--mode", "off") == nil)
    let settings = try cache("--mode", "private", "--cache", "/c", "--memory", "64M", "--disk", "2G", "--heuristics", "on")
    #expect(settings?.mode == .private && settings?.folder == "/c" && settings?.guesses == true)
    #expect(settings?.memory == 64 << 20 && settings?.disk == 2 << 30)
    for size in ["", "M", "-1", "1.5G", "99999999999G", "4T"] {
      #expect(throws: (any Error).self) { try cache("--memory", size) }
    }
    #expect(ByteSize(256 << 20).description == "256M" && ByteSize(1_000).description == "1000")
  }
}
#endif
