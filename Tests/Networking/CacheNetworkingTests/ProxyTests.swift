import CacheCore
import Foundation
import Testing

@testable import CacheNetworking

@Suite("Proxy routing") struct ProxyRoutingTests {
  typealias Source = SessionDownloader.Configuration.ProxySource

  private let plain: URL
  private let secure: URL
  private let proxy = ProxySettings.Proxy(host: "proxy", port: 1)

  init() throws {
    plain = try #require(URL(string: "http://origin/"))
    secure = try #require(URL(string: "https://origin/"))
  }

  @Test("on Linux the platform's proxies are the environment's, as curl reads them")
  func environment() throws {
    let routing = ProxyRouting(
      .platform, environment: ["http_proxy": "proxy:1", "HTTP_PROXY": "other:1", "HTTPS_PROXY": "proxy:1"],
      hasOnlyEnvironment: true)
    #expect(try routing.proxy(for: plain) == proxy)
    #expect(try routing.proxy(for: secure) == proxy)
    #expect(routing.settings == nil)
    let capitals = ProxyRouting(.platform, environment: ["HTTP_PROXY": "proxy:1"], hasOnlyEnvironment: true)
    #expect(try capitals.proxy(for: plain) == nil)
  }

  @Test(
    "on Linux a request is refused if its route differs from the environment's",
    arguments: [
      (Source.none, [:], true), (.none, ["http_proxy": "proxy:1"], false),
      (.none, ["http_proxy": "proxy:1", "no_proxy": "origin"], true),
      (.settings(.init(http: .init(host: "proxy", port: 1))), [:], false),
      (.settings(.init(http: .init(host: "proxy", port: 1))), ["http_proxy": "http://proxy:1/"], true),
      (.settings(.init(http: .init(host: "proxy", port: 2))), ["http_proxy": "proxy:1"], false),
      (.environment, ["http_proxy": "proxy:1"], true), (.environment, ["HTTP_PROXY": "proxy:1"], false),
      (.environment, ["http_proxy": "proxy:1", "no_proxy": "xn--bcher-kva.example"], true),
      (.environment, [:], true), (.environment, ["http_proxy": "ftp://proxy"], false),
    ] as [(Source, [String: String], Bool)])
  func refused(source: Source, environment: [String: String], isPossible: Bool) {
    let routing = ProxyRouting(source, environment: environment, hasOnlyEnvironment: true)
    do throws(CacheError) {
      _ = try routing.proxy(for: plain)
      #expect(isPossible)
    } catch {
      #expect(!isPossible)
      #expect(error.code == .invalidConfiguration)
    }
  }

  @Test("on Linux a name in no_proxy that libcurl does not convert is refused, and never sent to the proxy")
  func internationalException() throws {
    let url = try #require(URL(string: "http://bücher.example/"))
    func routing(_ exception: String) -> ProxyRouting {
      ProxyRouting(.environment, environment: ["http_proxy": "proxy:1", "no_proxy": exception], hasOnlyEnvironment: true)
    }
    #expect(try routing("xn--bcher-kva.example").proxy(for: url) == nil)
    let error = #expect(throws: CacheError.self) { try routing("bücher.example").proxy(for: url) }
    #expect(error?.code == .invalidConfiguration)
  }

  @Test("on other platforms the session gets the settings, and the platform's own are unknown")
  func told() throws {
    let settings = ProxySettings(http: proxy)
    let routing = ProxyRouting(.settings(settings), environment: ["http_proxy": "other:1"], hasOnlyEnvironment: false)
    #expect(try routing.proxy(for: plain) == proxy)
    #expect(routing.settings == settings)
    let platform = ProxyRouting(.platform, environment: ["http_proxy": "other:1"], hasOnlyEnvironment: false)
    #expect(try platform.proxy(for: plain) == nil)
    #expect(platform.settings == nil)
    #expect(ProxyRouting(.none, environment: [:], hasOnlyEnvironment: false).settings == ProxySettings())
  }

  @Test("the proxy settings are converted to CFNetwork's dictionary")
  func dictionary() {
    let settings = ProxySettings(
      http: .init(host: "a", port: 1), https: .init(kind: .socks5, host: "b", port: 2, user: "u", password: "secret"),
      exceptions: ["example.org", ".example.com", "127.0.0.1", "10.0.0.0/8"])

    let dictionary = SessionDownloader.Configuration.proxyDictionary(settings)

    #expect(dictionary["HTTPEnable"] as? Int == 1)
    #expect(dictionary["HTTPProxy"] as? String == "a")
    #expect(dictionary["HTTPPort"] as? Int == 1)
    #expect(dictionary["SOCKSProxy"] as? String == "b")
    #expect(dictionary["SOCKSPort"] as? Int == 2)
    #expect(dictionary["HTTPSProxy"] == nil)
    let patterns = ["example.org", "*.example.org", "example.com", "*.example.com", "127.0.0.1", "10.0.0.0/8"]
    #expect(dictionary["ExceptionsList"] as? [String] == patterns)
    #expect(!dictionary.values.contains { "\($0)".contains("secret") })
    #expect(SessionDownloader.Configuration.proxyDictionary(ProxySettings()).isEmpty)
    let international = SessionDownloader.Configuration.proxyDictionary(
      ProxySettings(http: .init(host: "bücher.example", port: 1), exceptions: [".bücher.example"]))
    #expect(international["HTTPProxy"] as? String == "xn--bcher-kva.example")
    #expect(international["ExceptionsList"] as? [String] == ["xn--bcher-kva.example", "*.xn--bcher-kva.example"])
  }
}

#if Origin && os(Linux)
import CacheTesting
import HTTPTypes
import LoopbackOrigin

// Each in a separate process, because the environment belongs to a whole process.
@Suite("Requests through a proxy", .timeLimit(.minutes(30))) struct ProxyTests {
  @Test("a request is sent to the proxy in absolute form, and an excepted host is contacted directly")
  func used() async {
    await #expect(processExitsWith: .success) {
      let (proxy, direct) = (try await OriginServer.start(), try await OriginServer.start())
      proxy.setFallback { _ in OriginResponse(text: "by proxy") }
      direct.setRoute("/b", Route(Data("directly".utf8)))
      setenv("http_proxy", proxy.url("/").absoluteString, 1)
      setenv("no_proxy", "127.0.0.1", 1)
      let downloader = SessionDownloader()
      func text(_ url: String) async throws -> String {
        guard let url = URL(string: url) else { return "" }
        let request = DownloadRequest(head: try HTTPRequest(resource: url))
        return String(decoding: try await downloader.download(request).body.collect(), as: UTF8.self)
      }

      let byProxy = try await text("http://host.invalid/a?x=1")
      let directly = try await text(direct.url("/b").absoluteString)

      guard byProxy == "by proxy", directly == "directly" else { throw CacheError(.other, reason: "\(byProxy), \(directly)") }
      guard proxy.requests.map(\.proxyTarget) == ["http://host.invalid/a?x=1"] else {
        throw CacheError(.other, reason: "\(proxy.requests)")
      }
      downloader.close()
      await proxy.stop()
      await direct.stop()
    }
  }

  @Test("a proxy that is missing, does not resolve, requires a credential or opens no tunnel is a proxy failure")
  func failures() async {
    await #expect(processExitsWith: .success) {
      let proxy = try await OriginServer.start()
      // A long timeout, because a resolver may wait long for a silent name server.
      func request(_ scheme: String) -> DownloadRequest {
        let head = HTTPRequest(method: .get, scheme: scheme, authority: "host.invalid", path: "/")
        return DownloadRequest(head: head, idleTimeout: .seconds(600))
      }
      let (plain, secure) = (request("http"), request("https"))
      func code(_ request: DownloadRequest, _ environment: String) async -> CacheError.Code? {
        setenv("all_proxy", environment, 1)
        let downloader = SessionDownloader()
        defer { downloader.close() }
        do {
          _ = try await downloader.download(request).body.collect()
          return nil
        } catch {
          return error.code
        }
      }
      proxy.setFallback { _ in
        OriginResponse(
          text: "credential required", status: .proxyAuthenticationRequired, fields: [.proxyAuthenticate: "Basic realm=\"x\""])
      }
      let live = proxy.url("/").absoluteString
      var codes = [await code(plain, live), await code(secure, live)]
      proxy.setFallback { _ in OriginResponse(status: .badGateway) }
      codes.append(await code(secure, live))
      await proxy.stop()
      codes += [await code(plain, live), await code(secure, live), await code(plain, "http://nowhere.invalid:1")]

      guard codes == Array(repeating: .proxyFailure, count: 6) else { throw CacheError(.other, reason: "\(codes)") }
    }
  }
}
#endif
