import CacheCore
import CacheTesting
import Foundation
import HTTPServing
import HTTPTypes
import LoopbackOrigin
import NIOCore
import Testing

@testable import GatewayServer

@Suite("The status page, the access log and PURGE")
struct StatusTests {
  @Test("the status page has a separate port, with JSON and HTML")
  func page() async throws {
    try await GatewayFixture.run {
      $0.status = HostAndPort(host: "127.0.0.1", port: 0)
    } _: { gateway, origin in
      origin.setRoute("/status.json", Route(OriginResponse(text: "the origin's own")))
      #expect(try await gateway.get("/status.json").body == "the origin's own")
      let status = try await RawClient.connect(try #require(gateway.statusPort))
      let (document, answer) = try await status.document("/status.json?x") { $0.traffic.requests == 1 }
      #expect(answer["content-type"] == "application/json")
      #expect(document.origin == "http://127.0.0.1:\(origin.port)")
      #expect(document.mode == "off")
      #expect(document.traffic.requests == 1)
      #expect(document.traffic.bypasses == 1)
      #expect(document.traffic.bytesSent == 16)
      try await status.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await status.answer().body.contains("<tr><th>Requests</th><td>1</td></tr>"))
      try await status.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await status.answer().status == 404)
      try await status.send("DELETE / HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await status.answer()["allow"] == "GET, HEAD")
      try await status.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await status.answer(to: "HEAD").status == 200)
    }
  }

  @Test("the counts include hits, revalidations, errors and incomplete responses")
  func counts() {
    var counts = TrafficCounts()
    func add(_ status: Int, _ outcome: CacheOutcome, _ bytes: Int64, isComplete: Bool = true) {
      counts.add(
        TrafficRecord(
          peer: nil, request: nil, status: status, outcome: outcome, bodyBytes: bytes, isComplete: isComplete,
          duration: .zero))
    }
    add(200, .hit, 10)
    add(200, .revalidated, 20)
    add(200, .stale, 40)
    add(200, .miss, 80, isComplete: false)
    add(403, .local, 160)
    add(502, .failed, 640)
    add(599, .bypass, 320)
    var expected = TrafficCounts()
    (expected.requests, expected.hits, expected.revalidations, expected.stale) = (7, 1, 1, 1)
    (expected.misses, expected.local, expected.bypasses, expected.errors, expected.aborted) = (1, 1, 1, 2, 1)
    expected.failures = 1
    (expected.bytesSent, expected.bytesSaved) = (1270, 70)
    #expect(counts == expected)
  }

  @Test("the access log has a line for each response")
  func log() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "gateway-\(UUID()).log").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    let origin = try await OriginServer.start()
    origin.setRoute("/a", Route(OriginResponse(text: "body")))
    let clock = ManualClock(now: Timestamp(nanoseconds: 784_111_777_120_000_000))
    try await GatewayFixture.run(inFrontOf: origin.port, clock: clock) {
      $0.accessLog = path
    } _: { gateway in
      _ = try await gateway.get("/a?\"b\\&sig=c")
      _ = try await gateway.ask("BAD TARGET", "/")
    }
    await origin.stop()
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    let first = try #require(lines.first)
    let beginning = "127.0.0.1 1994-11-06T08:49:37.120Z \"GET /a?\\x22b\\x5C&sig=… HTTP/1.1\" 200 4 bypass "
    #expect(first.hasPrefix(beginning) && first.hasSuffix(" ok"), "\(first)")
    // The duration in seconds, with six decimals.
    #expect(first.dropFirst(beginning.count).dropLast(3).wholeMatch(of: /[0-9]+\.[0-9]{6}/) != nil, "\(first)")
    #expect(lines.last?.hasPrefix("127.0.0.1 1994-11-06T08:49:37.120Z - 400 ") == true)
    #expect(lines.count == 2)
  }

  @Test("other users of the machine cannot read a new log")
  func logMode() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "gateway-\(UUID()).log").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    _ = try AccessLog(path: path)
    let mode = try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)
    #expect(mode.intValue & 0o137 == 0)
  }

  @Test(
    "PURGE is refused for pages of other sites",
    arguments: [
      ("Sec-Fetch-Site: cross-site", 403), ("Sec-Fetch-Site: same-site", 403), ("Origin: http://evil.example", 403),
      ("Origin: null", 403), ("Sec-Fetch-Site: same-origin", 404), ("Origin: http://shop.example", 404),
    ])
  func purgeOfPage(_ field: String, _ status: Int) async throws {
    try await GatewayFixture.run { gateway, _ in
      let answer = try await gateway.ask("PURGE", "/a", [field])
      #expect(answer.status == status)
    }
  }

  @Test("the log distinguishes the origin's error responses, origin failures, and the gateway's own responses")
  func errors() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "gateway-\(UUID()).log").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    try await GatewayFixture.run {
      $0.accessLog = path
      $0.cache = CacheSettings()
    } _: { gateway, origin in
      origin.setRoute("/own", Route(OriginResponse(text: "no", status: .badGateway)))
      origin.setRoute("/none", .fault(.closeBeforeHead))
      let own = try await gateway.get("/own")
      let none = try await gateway.get("/none")
      let notStored = try await gateway.get("/own", "Cache-Control: only-if-cached")
      let refused = try await gateway.get("/own", "Host: twice")
      #expect([own, none, notStored, refused].map(\.status) == [502, 502, 504, 400])
    }
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { $0.split(separator: " ") }
    let told = lines.map { "\($0.suffix(5).first ?? "") \($0.suffix(3).first ?? "")" }
    #expect(told.sorted() == ["400 local", "502 failed", "502 miss", "504 local"])
  }

  @Test("an access log that cannot be opened is an error before the gateway serves")
  func unopenableLog() {
    let error = #expect(throws: CacheError.self) { try AccessLog(path: "/nowhere/access.log") }
    #expect(error?.description == "/nowhere/access.log: cannot open the access log: No such file or directory")
  }

  @Test("the option decides which clients may use PURGE, and whether PURGE is forwarded to the origin")
  func purge() async throws {
    for (permission, status, requests) in [
      (PurgePermission.loopback, 404, 0), (.anyone, 404, 0), (.nobody, 403, 0), (.origin, 200, 1),
    ] {
      try await GatewayFixture.run {
        $0.purgers = permission
      } _: { gateway, origin in
        origin.setRoute("/a", Route(OriginResponse(text: "a")))
        let answer = try await gateway.ask("PURGE", "/a")
        #expect(answer.status == status)
        #expect(origin.requests.count == requests)
      }
    }
  }

  @Test(
    "loopback addresses are recognized",
    arguments: [
      ("127.0.0.1", true), ("127.9.9.9", true), ("::1", true), ("::ffff:127.0.0.1", true), ("10.0.0.1", false), ("::2", false),
    ])
  func loopback(address: String, isLoopback: Bool) throws {
    #expect(try SocketAddress(ipAddress: address, port: 1).isLoopback == isLoopback)
  }
}
