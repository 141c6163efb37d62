#if Origin
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Proxy requests", .timeLimit(.minutes(30)))
struct ProxyTests {
  @Test(
    "a target in absolute form is recorded unchanged and gets the route of its path",
    arguments: [
      ("http://far.example/a?q=1", "far.example", "/a", "q=1"), ("HTTP://far.example:8080/a", "far.example:8080", "/a", nil),
      ("http://far.example", "far.example", "/", nil), ("http://far.example?q", "far.example", "/", "q"),
    ] as [(String, String, String, String?)])
  func absoluteForm(target: String, authority: String, path: String, query: String?) async throws {
    try await withOrigin { origin in
      origin.setRoute(path, Route(Data("by path".utf8)))
      let client = try await origin.connect()

      #expect(try await client.get(target).text == "by path")

      let request = try #require(origin.requests(for: path).first)
      #expect(request.isProxied && request.proxyTarget == target)
      #expect(request.head.scheme == "http" && request.head.authority == authority)
      #expect(request.path == path && request.query == query)
    }
  }

  @Test("an ordinary request is not a proxy request and needs no proxy credential", arguments: ["/a", "/a?u=http://b/c", "*"])
  func originForm(target: String) async throws {
    try await withOrigin { origin in
      origin.setProxyCredential(OriginCredential(user: "u", password: "p"))
      origin.setFallback { OriginResponse(text: $0.target) }
      let client = try await origin.connect()

      #expect(try await client.request(target == "*" ? "OPTIONS" : "GET", target).text == target)

      let request = try #require(origin.requests.first)
      #expect(!request.isProxied && request.proxyTarget == nil && request.head.authority == "test")
    }
  }

  @Test("a proxy request without the credential gets a 407 and with it the response, on one connection")
  func credential() async throws {
    try await withOrigin { origin in
      origin.setRoute("/a", Route(Data("in".utf8)))
      origin.setProxyCredential(OriginCredential(user: "u", password: "p", realm: "proxy"))
      let client = try await origin.connect()
      let right = "Proxy-Authorization: Basic \(Data("u:p".utf8).base64EncodedString())"

      let refused = try await client.get("http://far.example/a")
      #expect(refused.status == 407 && refused["Proxy-Authenticate"]?.hasPrefix("Basic realm=\"proxy\"") == true)
      #expect(try await client.get("http://far.example/a", "Proxy-Authorization: Basic eDp5").status == 407)
      #expect(try await client.get("http://far.example/a", right).text == "in")
      origin.setProxyCredential(nil)
      #expect(try await client.get("http://far.example/a").text == "in")

      #expect(origin.counters.connectionsAccepted == 1 && origin.counters(for: "/a").requests == 4)
    }
  }

  @Test("a CONNECT request is refused but recorded")
  func connect() async throws {
    try await withOrigin { origin in
      origin.setRoute("/", Route(Data("no".utf8)))
      let client = try await origin.connect()

      #expect(try await client.request("CONNECT", "far.example:443").status == 501)

      #expect(origin.requests.map(\.proxyTarget) == ["far.example:443"])
      #expect(origin.requests.map(\.head.authority) == ["far.example:443"])
    }
  }
}
#endif
