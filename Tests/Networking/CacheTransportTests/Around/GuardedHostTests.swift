import CacheCore
import Foundation
import HTTPTypes
import Testing

@testable import CacheTransport

@Suite("Hosts of guarded requests")
struct GuardedHostTests {
  private func target(_ authority: String?, path: String? = "/", scheme: String? = "http") throws -> GuardedHost {
    try .of(HTTPRequest(method: .get, scheme: scheme, authority: authority, path: path))
  }

  @Test(
    "a target is a name or an address in any notation",
    arguments: [
      ("example.com", "example.com"), ("EXAMPLE.com.", "example.com"), ("example.com:8080", "example.com"),
      ("a_b-c.d", "a_b-c.d"),
      ("localhost", "localhost"), ("1.example", "1.example"), ("0xa.example", "0xa.example"),
      ("xn--bcher-kva.de", "xn--bcher-kva.de"),
      ("ex%61mple.com", "example.com"), ("0xzz", "0xzz"),
      ("127.0.0.1", "=127.0.0.1"), ("127.0.0.1.", "=127.0.0.1"), ("127.0.0.1:80", "=127.0.0.1"), ("127.1", "=127.0.0.1"),
      ("127.0.1", "=127.0.0.1"), ("2130706433", "=127.0.0.1"), ("0x7f000001", "=127.0.0.1"), ("0X7F.1", "=127.0.0.1"),
      ("0x7f.0x0.0x0.0x1", "=127.0.0.1"), ("0", "=0.0.0.0"), ("0.0.0.0", "=0.0.0.0"), ("1.65535", "=1.0.255.255"),
      ("127.1.", "=127.0.0.1"), ("%31%32%37.1", "=127.0.0.1"), ("169.254.43518", "=169.254.169.254"),
      ("[::1]", "=::1"), ("[::1]:80", "=::1"), ("[::ffff:7f00:1]", "=::ffff:127.0.0.1"),
      ("[::ffff:127.0.0.1]", "=::ffff:127.0.0.1"),
      ("[fe80::1%25eth0]", "=fe80::1"), ("[fe80::1%eth0]", "=fe80::1"), ("4294967295", "=255.255.255.255"),
    ])
  func forms(_ authority: String, _ expected: String) throws {
    switch try target(authority) {
    case .name(let name): #expect(name == expected)
    case .address(let address): #expect("=\(address)" == expected)
    }
  }

  @Test(
    "a host that programs parse differently is refused",
    arguments: [
      "", ".", "..", "a..b", ".a", "a.b..", "public.com@127.0.0.1", "127.0.0.1@public.com", "127.0.0.1/@public.com",
      "public.com\\@127.0.0.1", "public.com#@127.0.0.1", "public.com?@127.0.0.1", "a b", "a\tb", "a\r\nb", "a%00b", "a%2fb",
      "a%40b",
      "%2531%2532%2537.1", "１２７.0.0.1", "%EF%BC%91.1", "bücher.de", "127。0。0。1", "\u{212a}.com", "256.1.1.1", "1.2.3.4.5",
      "4294967296", "1.16777216", "0177.0.0.1", "127.0.0.01x.1", "010.0.0.1", "0x7f.0.0.08", "1.2.3.", "::1", "[::1", "[::1]x",
      "[::1]80",
      "[v1.a]", "[127.0.0.1]", "[]", "a:b", "a:80:80", "a:-1", "%", "%zz",
    ])
  func refused(_ authority: String) {
    if authority == "1.2.3." { return }
    #expect(throws: CacheError.self, "\(authority)") { try target(authority) }
  }

  @Test("a host hidden after the authority is refused")
  func path() {
    for path in ["@127.0.0.1/", ":80@127.0.0.1/", ".evil.com/", "", "%2f"] {
      #expect(throws: CacheError.self, "\(path)") { try target("public.com", path: path) }
    }
    #expect(throws: CacheError.self) { try target(nil) }
    #expect(throws: CacheError.self) { try target("a", path: nil) }
  }

  @Test("only http and https are allowed", arguments: ["file", "data", "ftp", "gopher", nil])
  func schemes(_ scheme: String?) throws {
    let error = #expect(throws: CacheError.self) { try target("a.com", scheme: scheme) }
    #expect(error?.code == .unsupportedScheme)
  }

  @Test("a target agrees with Foundation's URL")
  func urls() throws {
    for (text, expected) in [
      ("http://public@127.0.0.1/", GuardedHost.address(try #require(IPAddress("127.0.0.1")))),
      ("http://user:secret@example.com:81/a", .name("example.com")),
      ("http://[::ffff:7f00:1]/", .address(try #require(IPAddress("::ffff:7f00:1")))),
    ] {
      #expect(try GuardedHost.of(HTTPRequest(resource: TestRequest.url(text))) == expected)
    }
  }
}
