import CacheTesting
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Testing

@testable import HummingbirdCache

@Suite("The Hummingbird server with a cache")
struct HummingbirdCacheTests {
  private let upstream = ScriptedDownloader()

  /// The application, with a scripted upstream server.
  private var application: some ApplicationProtocol {
    Application(router: makeRouter(manager: makeManager(downloader: upstream), upstream: "upstream.test"))
  }

  private func url(_ path: String) throws -> URL { try #require(URL(string: "http://upstream.test\(path)")) }

  private static let cacheStatus = HTTPField.Name("Cache-Status")

  private static func cacheStatus(_ response: TestResponse) -> String {
    cacheStatus.flatMap { response.headers[$0] } ?? ""
  }

  @Test("the middleware serves the second request from the cache")
  func hit() async throws {
    upstream.respond(to: try url("/assets/a.svg?v=1"), with: .ok("<svg/>", etag: "\"1\"", cacheControl: "max-age=60"))
    try await application.test(.router) { client in
      for expected in ["Etagere;fwd=uri-miss;", "Etagere;hit;"] {
        let response = try await client.execute(uri: "/assets/a.svg?v=1", method: .get)
        #expect(response.status == .ok)
        #expect(String(buffer: response.body) == "<svg/>")
        #expect(Self.cacheStatus(response).hasPrefix(expected))
      }
    }
    try upstream.verify()
  }

  @Test("the middleware satisfies conditions from the cached response")
  func conditions() async throws {
    upstream.respond(to: try url("/assets/a.svg"), with: .ok("<svg/>", etag: "\"1\"", cacheControl: "max-age=60"))
    try await application.test(.router) { client in
      _ = try await client.execute(uri: "/assets/a.svg", method: .get)
      let confirmed = try await client.execute(
        uri: "/assets/a.svg", method: .get, headers: [.ifNoneMatch: "\"1\""])
      #expect(confirmed.status == .notModified)
    }
    try upstream.verify()
  }

  @Test("the middleware leaves other methods to the routes", arguments: [HTTPRequest.Method.post, .head])
  func otherMethods(_ method: HTTPRequest.Method) async throws {
    try await application.test(.router) { client in
      let response = try await client.execute(uri: "/assets/a.svg", method: method)
      #expect(response.status == .notFound)
    }
    #expect(upstream.requests.isEmpty)
  }

  @Test(
    "a path that leads out of the public paths is refused",
    arguments: [
      "/assets/../admin", "/assets/..", "/assets/%2e%2E/admin", "/assets/.%2e/admin", "/assets/..%2Fadmin",
      "/assets/..\\admin", "/assets/..%5cadmin", "/assets/..;/admin",
    ])
  func traversal(_ path: String) async throws {
    try await application.test(.router) { client in
      let response = try await client.execute(uri: path, method: .get)
      #expect(response.status == .badRequest)
    }
    #expect(upstream.requests.isEmpty)
  }

  @Test("dots inside a segment are passed on")
  func dots() async throws {
    upstream.respond(to: try url("/assets/a..b/...svg"), with: .ok("<svg/>"))
    try await application.test(.router) { client in
      let response = try await client.execute(uri: "/assets/a..b/...svg", method: .get)
      #expect(response.status == .ok)
    }
    try upstream.verify()
  }

  @Test("fields about one connection stay on that connection")
  func hopByHop() async throws {
    let named = try #require(HTTPField.Name("X-Hop"))
    var fields: HTTPFields = [.connection: "close, X-Hop", .upgrade: "h2c", .cacheControl: "max-age=60"]
    fields[named] = "1"
    upstream.respond(to: try url("/assets/a.svg"), with: .ok("<svg/>", fields: fields))
    try await application.test(.router) { [fields] client in
      let response = try await client.execute(uri: "/assets/a.svg", method: .get, headers: fields)
      for name in [.connection, .upgrade, named] { #expect(response.headers[name] == nil) }
    }
    let sent = try #require(upstream.requests.first).headerFields
    for name in [.connection, .upgrade, named] { #expect(sent[name] == nil) }
    #expect(sent[.cacheControl] == "max-age=60")
  }

  @Test("requests with other methods or paths reach the router")
  func others() async throws {
    try await application.test(.router) { client in
      let posted = try await client.execute(uri: "/assets/a.svg", method: .post)
      #expect(posted.status == .notFound)
      let elsewhere = try await client.execute(uri: "/other", method: .get)
      #expect(elsewhere.status == .notFound)
    }
    #expect(upstream.requests.isEmpty)
  }

  @Test("an unreachable upstream server is a 502, and a silent one a 504", arguments: ["/assets/a.svg", "/price/EUR"])
  func failures(_ path: String) async throws {
    let asked = try url(path == "/price/EUR" ? "/rates.json" : path)
    upstream.respond(to: asked, with: .failure(.connectionRefused), .failure(.timedOut))
    try await application.test(.router) { client in
      for expected in [HTTPResponse.Status.badGateway, .gatewayTimeout] {
        let response = try await client.execute(uri: path, method: .get)
        #expect(response.status == expected)
      }
    }
    try upstream.verify()
  }

  @Test("the handler loads the rates once for two requests")
  func handler() async throws {
    upstream.respond(to: try url("/rates.json"), with: .ok(#"{"USD": 1.1}"#, etag: "\"1\"", cacheControl: "max-age=60"))
    try await application.test(.router) { client in
      for source in ["network", "memory"] {
        let response = try await client.execute(uri: "/price/USD", method: .get)
        #expect(String(buffer: response.body) == "11.0 USD (rates from: \(source))\n")
      }
      let unknown = try await client.execute(uri: "/price/ABC", method: .get)
      #expect(unknown.status == .notFound)
    }
    try upstream.verify()
  }
}
