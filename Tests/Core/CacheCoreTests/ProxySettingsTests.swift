import CacheCore
import Foundation
import Testing

@Suite("Proxy settings") struct ProxySettingsTests {
  private let proxy = ProxySettings.Proxy(host: "proxy", port: 8080)

  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  @Test(
    "every notation of a proxy is read",
    arguments: [
      ("http://proxy:8080", ProxySettings.Proxy(host: "proxy", port: 8080)), ("proxy:8080", .init(host: "proxy", port: 8080)),
      ("proxy", .init(host: "proxy", port: 1080)), (" proxy:1/ ", .init(host: "proxy", port: 1)),
      ("https://proxy", .init(kind: .https, host: "proxy", port: 443)),
      ("SOCKS5://proxy", .init(kind: .socks5, host: "proxy", port: 1080)),
      ("socks5h://proxy:9", .init(kind: .socks5, host: "proxy", port: 9)),
      ("http://ada:love%40lace@proxy:1/x", .init(host: "proxy", port: 1, user: "ada", password: "love@lace")),
      ("ada@proxy:1", .init(host: "proxy", port: 1, user: "ada")), ("[::1]:3128", .init(host: "::1", port: 3128)),
      ("http://[fe80::1]", .init(host: "fe80::1", port: 1080)),
      ("a:b@c@proxy:1", .init(host: "proxy", port: 1, user: "a", password: "b@c")),
    ])
  func notations(text: String, expected: ProxySettings.Proxy) {
    #expect(ProxySettings.Proxy(text) == expected)
  }

  @Test(
    "text that is not a proxy is rejected",
    arguments: [
      "", "http://", "ftp://proxy", "proxy:0", "proxy:65536", "proxy:x", "proxy:", "[::1", "[::1]x", "a%zz@proxy:1", "a b:1",
    ])
  func malformed(text: String) { #expect(ProxySettings.Proxy(text) == nil) }

  @Test("a description omits the password")
  func description() {
    let proxy = ProxySettings.Proxy(host: "::1", port: 1, user: "ada", password: "secret")
    #expect(proxy.description == "http://[::1]:1")
  }

  @Test(
    "the environment variables select a proxy for each scheme",
    arguments: [
      ([:], nil, nil), (["http_proxy": "a:1"], "a", nil), (["HTTP_PROXY": "a:1"], "a", nil), (["https_proxy": "a:1"], nil, "a"),
      (["HTTPS_PROXY": "a:1"], nil, "a"), (["all_proxy": "a:1"], "a", "a"), (["ALL_PROXY": "a:1"], "a", "a"),
      (["all_proxy": "a:1", "https_proxy": "b:1"], "a", "b"), (["http_proxy": "a:1", "HTTP_PROXY": "b:1"], "a", nil),
      (["all_proxy": "a:1", "http_proxy": ""], nil, "a"), (["HTTP_PROXY": "a:1", "REQUEST_METHOD": "GET"], nil, nil),
      (["HTTP_PROXY": "a:1", "GATEWAY_INTERFACE": "CGI/1.1"], nil, nil),
      (["http_proxy": "a:1", "REQUEST_METHOD": "GET"], "a", nil),
      (["HTTPS_PROXY": "a:1", "REQUEST_METHOD": "GET"], nil, "a"),
    ] as [([String: String], String?, String?)])
  func environment(_ values: [String: String], http: String?, https: String?) throws {
    let settings = try ProxySettings(environment: values)
    #expect(settings.http?.host == http)
    #expect(settings.https?.host == https)
  }

  @Test("HTTP_PROXY in upper case is not read if the caller is as strict as curl")
  func strict() throws {
    let settings = try ProxySettings(environment: ["HTTP_PROXY": "a:1", "HTTPS_PROXY": "b:1"], readsCapitalHTTP: false)
    #expect(settings.http == nil)
    #expect(settings.https?.host == "b")
  }

  @Test("an invalid value gives an error that names the variable but not the value")
  func invalid() {
    let error = #expect(throws: CacheError.self) { try ProxySettings(environment: ["https_proxy": "ftp://ada:secret@proxy"]) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.reason.contains("https_proxy") == true)
    #expect(error?.reason.contains("secret") == false)
  }

  @Test(
    "each kind of exception covers its hosts",
    arguments: [
      ("bücher.example", "http://xn--bcher-kva.example/", true), (".xn--bcher-kva.example", "http://a.BÜCHER.example/", true),
      ("BÜCHER.example:80", "http://b%C3%BCcher.example/", true), ("ü..a", "http://xn--bcher-kva.example/", false),
      ("example.org", "http://example.org/", true), ("example.org", "http://www.Example.ORG/", true),
      (".example.org", "http://example.org/", true), (".example.org", "http://www.example.org/", true),
      ("*.example.org", "http://www.example.org/", true), ("example.org", "http://badexample.org/", false),
      ("example.org", "http://example.org.evil/", false), ("example.org.", "http://example.org/", true),
      ("example.org", "http://example.org./", true), ("*", "http://example.org/", true), (".", "http://example.org/", false),
      ("example.org:80", "http://example.org/", true), ("example.org:8080", "http://example.org/", false),
      ("example.org:8080", "http://example.org:8080/", true), ("127.0.0.1", "http://127.0.0.1:81/", true),
      ("127.0.0.1", "http://127.0.0.2/", false), ("127.0.0.0/8", "http://127.9.9.9/", true),
      ("10.0.0.0/8", "http://127.0.0.1/", false), ("127.0.0.0/33", "http://127.0.0.1/", false),
      ("127.0.0.0/x", "http://127.0.0.1/", false), ("::1", "http://[::1]/", true), ("[::1]:81", "http://[::1]:81/", true),
      ("fd00::/8", "http://[fd12::1]/", true), ("::/0", "http://127.0.0.1/", false), ("0.0.1", "http://127.0.0.1/", false),
      ("1", "http://127.0.0.1/", false),
    ])
  func exceptions(pattern: String, target: String, isCovered: Bool) throws {
    let settings = ProxySettings(http: proxy, exceptions: ["other.example", pattern])
    #expect(try settings.proxy(for: url(target)) == (isCovered ? nil : proxy))
  }

  @Test("commas and blanks separate the hosts of no_proxy")
  func list() throws {
    let settings = try ProxySettings(environment: ["http_proxy": "proxy:8080", "no_proxy": " a.example,b.example c.example,, "])
    for host in ["a", "b", "c"] { #expect(try settings.proxy(for: url("http://\(host).example/")) == nil) }
    #expect(try settings.proxy(for: url("http://d.example/")) == proxy)
  }

  @Test("http and https have their own proxies, and other schemes have none")
  func schemes() throws {
    let other = ProxySettings.Proxy(host: "other", port: 1)
    let settings = ProxySettings(http: proxy, https: other)
    #expect(try settings.proxy(for: url("HTTP://example.org/")) == proxy)
    #expect(try settings.proxy(for: url("https://example.org/")) == other)
    #expect(try settings.proxy(for: url("ftp://example.org/")) == nil)
    #expect(ProxySettings().proxy(for: try url("http://example.org/")) == nil)
  }
}
