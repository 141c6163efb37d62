import Foundation
import HTTPTypes
import Testing

@testable import CacheCore

@Suite("International host names")
struct HostNameTests {
  @Test(
    "every spelling of a host becomes one ASCII form (RFC 5891)",
    arguments: [
      ("bücher.example", "xn--bcher-kva.example"), ("BÜCHER.example", "xn--bcher-kva.example"),
      ("bu\u{308}cher.example", "xn--bcher-kva.example"), ("b%C3%BCcher.example", "xn--bcher-kva.example"),
      ("B%c3%9cCHER%2Eexample", "xn--bcher-kva.example"), ("bücher。example", "xn--bcher-kva.example"),
      ("bücher.example.", "xn--bcher-kva.example."), ("faß.example", "xn--fa-hia.example"), ("😀.example", "xn--e28h.example"),
      ("ex%61mple.com", "example.com"), ("１２７。0。0。1", "127.0.0.1"), ("a_b.ü", "a_b.xn--tda"),
    ])
  func converted(_ host: String, _ ascii: String) throws {
    #expect(try HostName.ascii(host) == ascii)
    #expect(HostName.comparable(host) == ascii)
  }

  @Test(
    "an ASCII name or an address is unchanged",
    arguments: [
      "Example.com", "xn--bcher-kva.example", "XN--ZZZZZ.example", "127.0.0.1", "::1", "[::1]", "fe80::1%eth0",
      "[fe80::1%25eth0]", "a_b", "",
    ])
  func unchanged(_ host: String) throws {
    #expect(try HostName.ascii(host) == host)
  }

  @Test(
    "a host without an ASCII form is refused with an error that names it",
    arguments: [
      "ü..example", "\u{200D}a.example", "-ü.example", "אa.example", "℀.example", "a／b.example", "a＠b.example", "［::1］",
      "%5B::1%5D", "a%2Fb.example", "a%40b", "a%3A80", "a%00b", "%E4.example", "a%", "a%zz", "%2531",
      "xn--bcher-kva%2Eexample", "ü%2525", String(repeating: "ü", count: 70),
    ])
  func refused(_ host: String) {
    let error = #expect(throws: CacheError.self) { _ = try HostName.ascii(host) }
    #expect(error?.code == .invalidURL)
    // Compares bytes: a joiner after the quotation mark is not a separate character.
    #expect(error?.reason.utf8.starts(with: "the host '".utf8) == true)
    #expect(error?.reason.contains("link") == false)
  }

  @Test("without IDNA, the error names the library to link")
  func withoutIDNA() {
    let error = HostName.refusal(of: "bücher.example", hasIDNA: false)
    #expect(error.reason.contains("bücher.example") && error.reason.contains("link FoundationInternationalization"))
  }

  @Test(
    "an authority keeps its user information and its port",
    arguments: [
      ("bücher.example:8080", "xn--bcher-kva.example:8080"), ("bücher.example:", "xn--bcher-kva.example:"),
      ("ü%40:p@bücher.example", "ü%40:p@xn--bcher-kva.example"), ("ü@\u{301}a.example", nil), ("ü@example.com", "ü@example.com"),
      ("[fe80::1%25eth0]:80", "[fe80::1%25eth0]:80"), ("example.com:80", "example.com:80"), ("ü..a:80", nil),
    ] as [(String, String?)])
  func authority(_ authority: String, _ ascii: String?) {
    #expect((try? HostName.ascii(authority: authority)) == ascii)
  }

  @Test(
    "a request for a URL has the ASCII host",
    arguments: [
      ("http://bücher.example/", "xn--bcher-kva.example"), ("https://BÜCHER。example:8443/ü?ü", "xn--bcher-kva.example:8443"),
      ("http://b%C3%BCcher.example/", "xn--bcher-kva.example"), ("http://ada:ä@bücher.example/", "xn--bcher-kva.example"),
      ("//bücher.example/x", "xn--bcher-kva.example"), ("http://xn--bcher-kva.example/", "xn--bcher-kva.example"),
      ("http://[fe80::1%25eth0]:80/", "[fe80::1%25eth0]:80"), ("asset://My%20Folder/a", "My%20Folder"),
    ])
  func request(_ text: String, _ authority: String) throws {
    let url = try #require(URL(string: text, relativeTo: URL(string: "https://base.example/")))
    #expect(try HTTPRequest(resource: url).authority == authority)
  }

  @Test(
    "a URL with a percent-encoded, invalid host is refused with an error that has the URL",
    arguments: ["http://a%2Fb/", "http://%E4.example/"])
  func refusedURL(_ text: String) throws {
    let url = try #require(URL(string: text))
    let error = #expect(throws: CacheError.self) { _ = try HTTPRequest(resource: url) }
    #expect(error?.code == .invalidURL && error?.url == text && error?.reason.contains("the host") == true)
  }

  @Test(
    "text with an invalid host is refused with the reason",
    arguments: [
      ("http://ü..example/a", true), ("https://u@אa.example:80?q", true), ("http://example.com:ü/", false),
      ("http://a b/", false),
    ])
  func refusedText(_ text: String, _ namesHost: Bool) {
    let error = #expect(throws: CacheError.self) { _ = try ResourceRequest(text) }
    #expect(error?.code == .invalidURL && error?.url == text.replacingOccurrences(of: "u@", with: ""))
    #expect(error?.reason.contains("(IDNA, RFC 5891)") == namesHost)
  }

  @Test(
    "every spelling of a host names the same resource",
    arguments: [
      ("bücher.example", "http://xn--bcher-kva.example/"), ("b%C3%BCcher.example:80", "http://xn--bcher-kva.example/"),
      ("u@BÜCHER.example:8080", "http://xn--bcher-kva.example:8080/"), ("XN--BCHER-KVA.example", "http://xn--bcher-kva.example/"),
      ("a%2Fb", "http://a%2fb/"),
    ])
  func key(_ authority: String, _ uri: String) {
    #expect(ResourceID.uri(of: HTTPRequest(method: .get, scheme: "http", authority: authority, path: "/")) == uri)
  }

  @Test("a URL has the same effective URI with and without a request")
  func plainURI() throws {
    for text in ["https://bücher.example/a", "https://xn--bcher-kva.example/a"] {
      let url = try #require(URL(string: text))
      #expect(ResourceID.plainURI(of: url) == "https://xn--bcher-kva.example/a")
      #expect(ResourceID.uri(of: try HTTPRequest(resource: url)) == "https://xn--bcher-kva.example/a")
    }
  }

  @Test("the authority of other schemes is not converted")
  func otherSchemes() throws {
    var request = HTTPRequest(method: .get, scheme: "asset", authority: "My%20Folder", path: "/")
    try request.convertHost()
    #expect(request.authority == "My%20Folder")
    #expect(ResourceID.uri(of: request) == "asset://my%20folder/")
  }
}
