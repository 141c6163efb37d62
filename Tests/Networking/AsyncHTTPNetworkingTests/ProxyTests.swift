#if AsyncHTTP && Origin
import AsyncHTTPNetworking
import CacheCore
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("async-http-client through a proxy", .timeLimit(.minutes(30)))
struct ProxyTests {
  private func downloader(
    _ proxy: ProxySettings.Proxy, _ change: (inout AsyncHTTPDownloader.Configuration) -> Void = { _ in }
  ) throws -> AsyncHTTPDownloader {
    try Fixture.downloader(
      .init {
        $0.proxy = proxy
        change(&$0)
      })
  }

  private func request(_ text: String, body: ResourceBody? = nil) throws -> DownloadRequest {
    let url = try #require(URL(string: text))
    return DownloadRequest(head: try HTTPRequest(resource: url, method: body == nil ? .get : .post), body: body)
  }

  /// Runs a test with an origin and a proxy whose tunnels all lead to it.
  private func run(
    credential: String? = nil, _ body: (OriginServer, TunnelProxy) async throws -> Void
  ) async throws {
    let origin = try await OriginServer.start()
    origin.setRoute("/echo", Route(handler: { OriginResponse($0.body) }))
    origin.setRoute("/a", Route(Data("through".utf8)))
    let proxy = try await TunnelProxy.start(to: origin.port, credential: credential)
    let outcome: Result<Void, any Error>
    do { outcome = .success(try await body(origin, proxy)) } catch { outcome = .failure(error) }
    try await proxy.stop()
    await origin.stop()
    try outcome.get()
  }

  @Test(
    "a response to CONNECT that opens no tunnel is an error, whatever its status",
    arguments: [
      "HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 000 X\r\n\r\n", "HTTP/1.1 101 X\r\n\r\nok",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 012 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 099 X\r\n\r\n", "HTTP/1.1 999 X\r\n\r\n", "HTTP/1.1 1000 X\r\n\r\n", "no HTTP\r\n\r\n",
    ])
  func invalidConnect(bytes: String) async throws {
    let origin = try await OriginServer.start()
    origin.setRoute("/", .fault(.raw(Data(bytes.utf8))))
    let downloader = try downloader(.init(host: "127.0.0.1", port: origin.port))
    for scheme in ["http", "https"] {
      let error = await failure(downloader, try request("\(scheme)://server.example/a"))
      #expect(error != nil)
    }
    await downloader.close()
    await origin.stop()
  }

  @Test("a plain http request uses a tunnel, and the server gets it as without a proxy")
  func plain() async throws {
    try await run { origin, proxy in
      let downloader = try downloader(.init(host: "127.0.0.1", port: proxy.port))
      let responses = [
        try await downloader.download(request("http://far.example/a")).body.collect(),
        try await downloader.download(request("http://far.example:8080/echo", body: ResourceBody(Data("sent".utf8)))).body
          .collect(),
      ]
      await downloader.close()
      #expect(responses == [Data("through".utf8), Data("sent".utf8)])
      #expect(
        proxy.log.heads.map { String($0.prefix { $0 != "\r\n" }) } == [
          "CONNECT far.example:80 HTTP/1.1", "CONNECT far.example:8080 HTTP/1.1",
        ])
      #expect(origin.requests.map(\.head.authority) == ["far.example", "far.example:8080"])
      #expect(origin.requests.allSatisfy { !$0.isProxied })
    }
  }

  @Test("a proxy and the server behind it get the ASCII form of an international host, regardless of its notation")
  func international() async throws {
    try await run { origin, proxy in
      let downloader = try downloader(.init(host: "127.0.0.1", port: proxy.port))
      for text in ["http://bücher.example/a", "http://b%C3%BCcher.example/a", "http://xn--bcher-kva.example/a"] {
        #expect(try await downloader.download(request(text)).body.collect() == Data("through".utf8))
      }
      for authority in ["BÜCHER.example", "b%C3%BCcher.example"] {
        let head = HTTPRequest(method: .get, scheme: "http", authority: authority, path: "/a")
        #expect(try await downloader.download(DownloadRequest(head: head)).body.collect() == Data("through".utf8))
      }
      let secure = await failure(downloader, try request("https://bücher.example/a"))
      await downloader.close()

      let connects = Set(proxy.log.heads.map { String($0.prefix { $0 != "\r\n" }) })
      #expect(connects == ["CONNECT xn--bcher-kva.example:80 HTTP/1.1", "CONNECT xn--bcher-kva.example:443 HTTP/1.1"])
      #expect(origin.requests.map(\.head.authority) == Array(repeating: "xn--bcher-kva.example", count: 5))
      // The origin does not use TLS. The first record of the handshake has the name (RFC 6066 §3).
      #expect(secure?.code == .tlsFailure)
      let hello = try #require(proxy.log.firstBytes.first { $0.first == 22 })
      #expect(Data(hello).range(of: Data("xn--bcher-kva.example".utf8)) != nil)
    }
  }

  @Test("an international host without an ASCII form is refused before anything is sent")
  func refusedName() async throws {
    try await run { _, proxy in
      let downloader = try downloader(.init(host: "127.0.0.1", port: proxy.port))
      let head = HTTPRequest(method: .get, scheme: "http", authority: "ü..example", path: "/a")
      let error = await failure(downloader, DownloadRequest(head: head))
      await downloader.close()
      #expect(error?.code == .invalidURL && error?.reason.contains("ü..example") == true)
      #expect(proxy.log.heads.isEmpty)
      let refused = #expect(throws: CacheError.self) { _ = try self.downloader(.init(host: "ü..example", port: 1)) }
      #expect(refused?.code == .invalidURL)
    }
  }

  @Test("an https request uses a tunnel in which TLS begins with the server")
  func secure() async throws {
    try await run { origin, proxy in
      let downloader = try downloader(.init(host: "127.0.0.1", port: proxy.port))
      let error = await failure(downloader, try request("https://far.example/a"))
      await downloader.close()
      // The origin does not use TLS.
      #expect(error?.code == .tlsFailure)
      #expect(proxy.log.heads.allSatisfy { $0.hasPrefix("CONNECT far.example:443 HTTP/1.1\r\n") } && !proxy.log.heads.isEmpty)
      // A handshake record (RFC 8446 §5.1) that contains the server's name.
      let hello = try #require(proxy.log.firstBytes.first)
      #expect(hello.first == 22 && Data(hello).range(of: Data("far.example".utf8)) != nil)
      #expect(origin.requests.isEmpty)
    }
  }

  @Test(
    "an https request through a tunnel reaches a server with TLS",
    .enabled(if: ProcessInfo.processInfo.environment["ETAGERE_INTEROP_TLS_ORIGIN"] != nil))
  func secureServer() async throws {
    let environment = ProcessInfo.processInfo.environment
    let address = try #require(environment["ETAGERE_INTEROP_TLS_ORIGIN"])
    let authority = try #require(environment["ETAGERE_INTEROP_CERTIFICATES"]) + "/ca.pem"
    let proxy = try await TunnelProxy.start(to: try #require(URL(string: address)?.port))
    let downloader = try downloader(.init(host: "127.0.0.1", port: proxy.port)) { $0.tls.additionalRoots = [.file(authority)] }
    let response = try await downloader.download(request(address + "/who"))
    #expect(response.head.status == .ok)
    #expect(try await response.body.collect() == Data("HTTP/2.0".utf8))
    await downloader.close()
    #expect(proxy.log.heads.count == 1)
    try await proxy.stop()
  }

  @Test("a proxy over TLS is refused before anything is sent")
  func overTLS() {
    #expect(throws: CacheError.self) { try downloader(.init(kind: .https, host: "127.0.0.1", port: 1)) }
  }

  @Test("the proxy's credential is sent to the proxy only")
  func credential() async throws {
    let expected = "Basic " + Data("me:secret".utf8).base64EncodedString()
    try await run(credential: expected) { origin, proxy in
      let downloader = try downloader(.init(host: "127.0.0.1", port: proxy.port, user: "me", password: "secret"))
      let body = try await downloader.download(request("http://far.example/a")).body.collect()
      await downloader.close()
      #expect(body == Data("through".utf8))
      #expect(origin.requests.allSatisfy { $0.fields[.proxyAuthorization] == nil } && origin.requests.count == 1)
    }
  }

  @Test(
    "a proxy that refuses has its own error, and its response is not the server's",
    arguments: ["http://far.example/a", "https://far.example/a"],
    [nil, "wrong", "secret"] as [String?])
  func refused(_ address: String, _ password: String?) async throws {
    let proxy = try await OriginServer.start()
    // 407 without the right credential. With it 501, because this proxy creates no tunnels.
    proxy.setProxyCredential(.init(user: "me", password: "secret"))
    let downloader = try downloader(
      .init(host: "127.0.0.1", port: proxy.port, user: password.map { _ in "me" }, password: password))
    let error = await failure(downloader, try request(address))
    await downloader.close()
    #expect(error?.code == .proxyFailure && error?.status == nil)
    let isPassed = password == "secret"
    #expect(error?.reason.contains(isPassed ? "refused" : "requires a credential") == true)
    let port = address.hasPrefix("https") ? 443 : 80
    #expect(
      proxy.requests.allSatisfy { $0.method == .connect && $0.proxyTarget == "far.example:\(port)" } && !proxy.requests.isEmpty)
    await proxy.stop()
  }

  @Test("a missing proxy is an error")
  func gone() async throws {
    // A port on which no server listens.
    let downloader = try downloader(.init(host: "127.0.0.1", port: 1))
    let error = await failure(downloader, try request("http://far.example/a"))
    await downloader.close()
    #expect(error?.isUnreachable == true)
  }
}
#endif
