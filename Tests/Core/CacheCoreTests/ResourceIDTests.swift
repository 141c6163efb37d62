import CacheCore
import HTTPTypes
import Testing

@Suite("Resource identities")
struct ResourceIDTests {
  @Test(
    "a resource is identified by its normalized URI (RFC 3986 §6.2)",
    arguments: [
      ("HTTP", "Example.COM", "/A", "http://example.com/A"),
      ("http", "example.com:80", "/", "http://example.com/"),
      ("https", "example.com:443", "/", "https://example.com/"),
      ("https", "example.com:80", "/", "https://example.com:80/"),
      ("http", "example.com:8080", "/", "http://example.com:8080/"),
      ("http", "example.com:", "/", "http://example.com/"),
      ("http", "user:secret@example.com", "/", "http://example.com/"),
      ("http", "user@odd:p@example.com:80", "/", "http://example.com/"),
      ("http", "example.com:0080", "/", "http://example.com/"),
      ("http", "example.com:043", "/", "http://example.com:43/"),
      ("http", "example.com:00", "/", "http://example.com:00/"),
      ("https", "[::1]:00443", "/", "https://[::1]/"),
      ("other", "example.com:080", "/", "other://example.com:80/"),
      ("http", "[::1]:80", "/", "http://[::1]/"),
      ("http", "[::80]", "/", "http://[::80]/"),
      ("http", "example.com", "", "http://example.com/"),
      ("http", "example.com", "/a?Q=1&b=%20", "http://example.com/a?Q=1&b=%20"),
    ])
  func normalForm(_ scheme: String, _ authority: String, _ path: String, _ uri: String) {
    let request = HTTPRequest(method: .get, scheme: scheme, authority: authority, path: path)
    #expect(ResourceID.uri(of: request) == uri)
    #expect(ResourceID.isURI(uri, of: request) && !ResourceID.isURI(uri + "/", of: request))
  }

  @Test("a URI without a host is complete")
  func withoutAuthority() {
    #expect(
      ResourceID.uri(of: HTTPRequest(method: .get, scheme: "file", authority: nil, path: "/a/b")) == "file:///a/b")
    #expect(
      ResourceID.uri(of: HTTPRequest(method: .get, scheme: "data", authority: nil, path: "text/plain,A"))
        == "data:text/plain,A")
    #expect(ResourceID.uri(of: HTTPRequest(method: .get, scheme: nil, authority: "a", path: "/")) == nil)
    #expect(ResourceID.uri(of: HTTPRequest(method: .get, scheme: "file", authority: nil, path: nil)) == nil)
  }

  @Test("a caller's key replaces the URI, and an empty partition counts as none")
  func keysAndPartitions() {
    #expect(ResourceID.make(uri: "https://a/b") == "https://a/b")
    #expect(ResourceID.make(uri: "https://a/b", partition: "") == "https://a/b")
    #expect(ResourceID.make(uri: "https://a/b?sig=1", key: "k") == ResourceID.make(uri: "https://a/b?sig=2", key: "k"))
    #expect(ResourceID.make(uri: "https://a/b", key: "https://a/b") != ResourceID.make(uri: "https://a/b"))
    #expect(
      ResourceID.make(uri: "https://a/b", partition: "one") != ResourceID.make(uri: "https://a/b", partition: "other"))
  }

  /// All parts that identify a resource. The URI counts only if there is no key.
  private struct Parts: Hashable {
    var uri: String
    var key: String?
    var partition: String

    var text: String { ResourceID.make(uri: key == nil ? uri : "https://ignored/", key: key, partition: partition) }
  }

  @Test("partitions, keys and URIs never collide")
  func noCollisions() {
    // Given texts from the pieces of identities, so that a collision would appear soon
    var generator = SeededGenerator(state: 11)
    let pieces = ["\u{1F}", "k", "p", ":", "1", "2", "9", "/", "a", "é", "\u{301}", "https://a/b", "\u{1F}k", "\u{1F}p3:"]
    func text(_ generator: inout SeededGenerator) -> String {
      (0..<Int.random(in: 0...4, using: &generator)).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
    }

    // When
    var seen: [String: Parts] = [:]
    var forged: [String] = []
    for _ in 0..<50_000 {
      let key: String? = Bool.random(using: &generator) ? text(&generator) : nil
      let parts = Parts(
        uri: key == nil ? "https://a/\(Int.random(in: 0..<4, using: &generator))" : "", key: key, partition: text(&generator))
      if let other = seen.updateValue(parts, forKey: parts.text), other != parts { forged.append(parts.text) }
    }

    // Then
    #expect(forged.isEmpty)
    #expect(seen.count > 10_000)
  }

  @Test(
    "the readable text contains no control characters",
    arguments: [
      ("https://a/b", nil, nil, "https://a/b"),
      ("https://a/b", nil, "tenant", "tenant / https://a/b"),
      ("https://a/b", "own", nil, "own"),
      ("https://a/b", "own", "tenant", "tenant / own"),
      ("https://a/b", "own", "a:b", "a:b / own"),
      ("https://a/b", "\u{301}own", "\u{301}t", "\u{301}t / \u{301}own"),
      ("https://a/b", "a\nb\u{1B}[31m", nil, "ab[31m"),
    ] as [(String, String?, String?, String)])
  func readable(_ uri: String, _ key: String?, _ partition: String?, _ text: String) {
    #expect(ResourceID.readable(ResourceID.make(uri: uri, key: key, partition: partition)) == text)
  }

  @Test(
    "any text is readable, even if it only resembles an identity",
    arguments: [
      "\u{1F}", "\u{1F}p", "\u{1F}p:", "\u{1F}p-9:abc", "\u{1F}p99:abc", "\u{1F}p1:é", "\u{1F}p99999999999999999999:a", "\u{1F}k",
      "\u{1F}px:a", "",
    ])
  func malformed(_ resource: String) {
    let text = ResourceID.readable(resource)
    #expect(!text.unicodeScalars.contains { $0.value < 0x20 })
  }
}
