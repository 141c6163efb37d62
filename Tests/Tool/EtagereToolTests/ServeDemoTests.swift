#if Tool && Service
import CacheTesting
import Etagere
import Foundation
import HTTPTypes
import ImageService
import Testing

@testable import EtagereTool

@Suite("etagere-cli serve: demo page", .timeLimit(.minutes(30)))
struct ServeDemoTests {
  private struct Order: Encodable {
    var source = "site/a.png"
    var operations = "width=20"
  }

  private struct SignedPath: Decodable {
    var path: String
  }

  private struct Problem: Decodable {
    var status: Int
    var code: String
    var detail: String
  }

  private static func body(_ order: Order) throws -> String { String(decoding: try JSONEncoder().encode(order), as: UTF8.self) }

  private static func send(
    _ body: String, _ fields: HTTPFields = [.contentType: "application/json"], to service: RunningService
  ) async throws -> (status: Int, fields: HTTPFields, data: Data) {
    try await service.send(.post, "http://\(service.address)/demo/sign", fields, body: body)
  }

  private static func sign(_ order: Order = Order(), with service: RunningService) async throws -> String {
    let response = try await send(try body(order), to: service)
    #expect(response.status == 200)
    #expect(response.fields[.cacheControl] == "no-store")
    return try JSONDecoder().decode(SignedPath.self, from: response.data).path
  }

  /// Returns the operations of a signed path.
  private static func operations(of path: String) throws -> String {
    let segments = path.split(separator: "/")
    try #require(segments.count == 4)
    return try #require(String(segments[2]).removingPercentEncoding)
  }

  @Test("without the setting, the page and the route do not exist, and nothing about them is on standard error")
  func off() async throws {
    let service = try await RunningService()
    #expect(try await service.get("http://\(service.address)/demo").status == 404)
    #expect(try await Self.send(try Self.body(Order()), to: service).status == 404)
    #expect(try service.errors.allSatisfy { !$0.contains("/demo") })
    #expect(try await service.stop() == 0)
  }

  @Test("the page is one document with a new nonce in each response, and lists the allowed sources and the presets")
  func page() async throws {
    let service = try await RunningService(
      "--demo", "true", "--origin", "https://photos.example.com/public", "--origin", "https://*.example.org", "--preset",
      "small=width=20", "--preset", "<b>=gray")
    #expect(
      try service.errors.contains(
        "etagere-cli: http://\(service.address)/demo signs a URL for every client that can reach it: not for production"))
    var nonces: Set<String> = []
    for _ in 0..<2 {
      let response = try await service.get("http://\(service.address)/demo")
      #expect(response.status == 200)
      #expect(response.fields[.contentType] == "text/html; charset=utf-8")
      #expect(response.fields[.cacheControl] == "no-store")
      #expect(response.fields[.xContentTypeOptions] == "nosniff")
      let policy = try #require(response.fields[.contentSecurityPolicy])
      #expect(policy.hasPrefix("default-src 'none'; script-src 'nonce-"))
      #expect(!policy.contains("unsafe"))
      let nonce = try #require(policy.firstMatch(of: /script-src 'nonce-([^']+)'/)?.output.1)
      nonces.insert(String(nonce))
      let html = String(decoding: response.data, as: UTF8.self)
      #expect(html.contains("<script nonce=\"\(nonce)\">") && html.contains("<style nonce=\"\(nonce)\">"))
      for option in ["site/", "https://photos.example.com/public/", "small", "&lt;b&gt;", "jpeg", "png"] {
        #expect(html.contains("<option value=\"\(option)\">"), "\(option)")
      }
      #expect(html.contains("<option value=\"webp\">") == (RunningService.typeOfWebP == "image/webp"))
      #expect(html.contains("<code>https://*.example.org</code>") && !html.contains("<option value=\"https://*"))
      #expect(!html.contains("<b>"))
    }
    #expect(nonces.count == 2)
    #expect(try await service.stop() == 0)
  }

  @Test("a signed path gets an image, and is valid for one hour at most")
  func signing() async throws {
    let service = try await RunningService("--demo", "true", "--preset", "small=width=20")
    let path = try await Self.sign(Order(operations: "preset=small,expires=253402300799"), with: service)
    let latest = Int64((Date() + 3_600).timeIntervalSince1970)
    let response = try await service.get("http://\(service.address)\(path)", [.accept: "image/webp"])
    #expect(response.status == 200)
    #expect(response.fields[.contentType] == RunningService.typeOfWebP)
    #expect(try ImageHeader(of: response.data).size == PixelSize(20, 15))
    let end = try #require(try Self.operations(of: path).firstMatch(of: /^preset=small,expires=253402300799,expires=(\d+)$/))
    #expect(try #require(Int64(end.output.1)) <= latest)

    let expired = try await Self.sign(Order(operations: "gray,expires=1"), with: service)
    #expect(try Self.operations(of: expired) == "gray,expires=1")
    #expect(try await service.get("http://\(service.address)\(expired)").status == 403)
    #expect(try await service.stop() == 0)
  }

  @Test("operations and sources that are not valid get 400 with the reason, and the reason is in the log")
  func invalid() async throws {
    let service = try await RunningService("--demo", "true", "--max-side", "100")
    let cases: [(order: Order, code: String, reason: String)] = [
      (Order(operations: "width=101"), "invalidOperation", "'width'"), (Order(operations: ""), "invalidOperation", "name"),
      (Order(operations: "preset=none"), "invalidOperation", "'none'"), (Order(source: "a.png"), "invalidURL", "source"),
      (Order(source: "file:///etc/passwd"), "invalidURL", "source"),
    ]
    for (order, code, reason) in cases {
      let response = try await Self.send(try Self.body(order), to: service)
      #expect(response.status == 400 && response.fields[.contentType] == "application/problem+json", "\(order)")
      let problem = try JSONDecoder().decode(Problem.self, from: response.data)
      #expect(problem.status == 400 && problem.code == code && problem.detail.contains(reason), "\(problem)")
    }
    for body in ["", "[]", "{\"source\": \"site/a.png\"}", try Self.body(Order(source: String(repeating: "a", count: 20_000)))] {
      #expect(try await Self.send(body, to: service).status == 400, "\(body.prefix(40))")
    }
    #expect(try await service.stop() == 0)
    #expect(try service.log.first?.contains(#""error":"invalidOperation: "#) == true)
  }

  @Test("requests of other sites, and bodies that are not JSON, are not signed")
  func otherSites() async throws {
    let service = try await RunningService("--demo", "true")
    let site = try #require(HTTPField.Name("Sec-Fetch-Site"))
    let body = try Self.body(Order())
    for (value, status) in [("same-origin", 200), ("same-site", 403), ("cross-site", 403), ("none", 403)] {
      #expect(
        try await Self.send(body, [.contentType: "application/json", site: value], to: service).status == status, "\(value)")
    }
    for type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
      #expect(try await Self.send(body, [.contentType: type], to: service).status == 415, "\(type)")
    }
    #expect(try await Self.send(body, [:], to: service).status == 415)
    #expect(try await Self.send(body, [.contentType: "Application/JSON; charset=utf-8"], to: service).status == 200)
    // A preflight request (Fetch Standard §3.2.2) is not allowed either.
    #expect(try await service.send(.options, "http://\(service.address)/demo/sign").status == 405)
    #expect(try await service.stop() == 0)
  }

  @Test(
    "only IP addresses, localhost and the host of the settings are trusted as the name of the server",
    arguments: [
      ("127.0.0.1:8080", true), ("192.0.2.1", true), ("[::1]:8080", true), ("localhost:8080", true), ("LOCALHOST", true),
      ("images.internal:80", true), ("example.com:8080", false), ("localhost.example.com", false),
      ("127.0.0.1.example.com", false), ("127.0.0.1@example.com", false), ("", false), (":8080", false),
    ])
  func host(_ authority: String, _ isTrusted: Bool) {
    #expect(DemoPage.isTrusted(authority, listeningOn: "images.internal") == isTrusted)
  }

  @Test("after SIGHUP, the page signs with the newest key")
  func rotation() async throws {
    let service = try await RunningService("--demo", "true")
    let (old, new) = (String(repeating: "01", count: 32), String(repeating: "02", count: 32))
    func isSigned(_ path: String, with key: String) throws -> Bool {
      try SigningKey(hexadecimal: key).path(for: "site/a.png", operations: Self.operations(of: path)) == path
    }
    let before = try await Self.sign(with: service)
    #expect(try isSigned(before, with: old))
    try service.fixture.write("\(new)\n\(old)", "keys")
    service.signal(SIGHUP)
    try await Polling.until { ((try? service.errors) ?? []).contains("etagere-cli: 2 signing keys read") }
    let after = try await Self.sign(with: service)
    #expect(try isSigned(after, with: new))
    #expect(try await service.get("http://\(service.address)\(after)").status == 200)
    #expect(try await service.stop() == 0)
  }

  @Test("images cannot have the path of the page")
  func conflict() async throws {
    let fixture = try ToolFixture()
    let keys = try fixture.write(String(repeating: "01", count: 32), "keys")
    let arguments = ["serve", "--keys-file", keys, "--folder", "a=\(fixture.path)", "--demo", "true", "--path"]
    for path in ["/demo", "/demo/sign"] {
      let run = try await fixture.run(arguments + [path])
      #expect(run.status == 64)
      #expect(run.errors.count == 1 && run.errors[0].contains("'\(path)'"), "\(run.errors)")
    }
  }
}
#endif
