#if Origin
import CacheCore
import CacheNetworking
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

@Suite("Hosts with URLSession", .timeLimit(.minutes(30))) struct HostTests {
  #if os(Linux)
  // libcurl connects every name below `localhost` to the loopback interface (RFC 6761 §6.3), without DNS.
  @Test(
    "an international host is requested in its ASCII form, regardless of its notation",
    arguments: ["bücher.localhost", "BÜCHER。localhost", "b%C3%BCcher.localhost", "xn--bcher-kva.localhost"])
  func international(host: String) async throws {
    try await Fixture.run { fixture in
      fixture.origin.setRoute("/a", Route(Data("x".utf8)))
      let authority = "\(host):\(fixture.origin.port)"
      let url = try #require(URL(string: "http://\(authority)/a"))
      let heads = [
        try HTTPRequest(resource: url), HTTPRequest(method: .get, scheme: "http", authority: authority, path: "/a"),
      ]

      for head in heads {
        #expect(try await fixture.downloader.download(DownloadRequest(head: head)).body.collect() == Data("x".utf8))
      }

      let ascii = "xn--bcher-kva.localhost:\(fixture.origin.port)"
      #expect(fixture.origin.requests.map(\.head.authority) == [ascii, ascii])
    }
  }

  // Each in a separate process, because the environment belongs to a whole process.
  @Test("a proxy gets the ASCII form of an international host")
  func proxied() async {
    await #expect(processExitsWith: .success) {
      let proxy = try await OriginServer.start()
      proxy.setFallback { _ in OriginResponse(text: "by proxy") }
      setenv("http_proxy", proxy.url("/").absoluteString, 1)
      setenv("no_proxy", "", 1)
      let downloader = SessionDownloader()
      for text in ["http://bücher.invalid/a", "http://b%C3%BCcher.invalid/a"] {
        guard let url = URL(string: text) else { throw CacheError(.invalidURL, reason: text) }
        _ = try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url))).body.collect()
      }
      let targets = proxy.requests.map(\.proxyTarget)
      guard targets == Array(repeating: "http://xn--bcher-kva.invalid/a", count: 2) else {
        throw CacheError(.other, reason: "\(targets)")
      }
      downloader.close()
      await proxy.stop()
    }
  }
  #endif

  @Test("an international host without an ASCII form is refused before anything is sent")
  func refused() async throws {
    try await Fixture.run { fixture in
      let head = HTTPRequest(method: .get, scheme: "http", authority: "ü..localhost:\(fixture.origin.port)", path: "/")
      let error = await fixture.failure(of: DownloadRequest(head: head))
      #expect(error?.code == .invalidURL && error?.reason.contains("ü..localhost") == true)
      #expect(fixture.origin.counters.connectionsAccepted == 0)
    }
  }

  @Test("the error of an IPv6 literal does not blame the URL")
  func addressLiteral() async throws {
    try await Fixture.run { fixture in
      // No server listens at this address. A Foundation that accepts the URL reports that.
      let head = HTTPRequest(method: .get, scheme: "http", authority: "[::1]:\(fixture.origin.port)", path: "/")
      let error = try #require(await fixture.failure(of: DownloadRequest(head: head)))
      #expect(error.code == .unsupported || error.code == .connectionRefused)
      if error.code == .unsupported { #expect(error.reason.contains("IPv6 literal")) }
    }
  }
}
#endif
