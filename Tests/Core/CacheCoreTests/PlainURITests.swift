import CacheCore
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("URLs that are already their effective URI")
struct PlainURITests {
  /// Returns the effective URI of the URL's request, or `nil` if there is no request or if it has credentials.
  private func named(by url: URL) -> String? {
    guard let request = try? HTTPRequest(parsing: url), request.headerFields.isEmpty else { return nil }
    return ResourceID.uri(of: request)
  }

  @Test(
    "the text of a normalized URL is its effective URI",
    arguments: [
      "https://example.com/", "http://a.b-c.example/x/y.png?q=1&r=%20;s@t", "https://example.com:8443/a", "http://127.0.0.1:1/",
      "http://example.com:443/", "https://example.com/A/../b//c", "https://a-b.example/%C3%BC",
      "https://xn--bcher-kva.example/", "https://a--b.example/",
    ])
  func plain(_ text: String) throws {
    let url = try #require(URL(string: text))
    #expect(ResourceID.plainURI(of: url) == text)
    #expect(named(by: url) == text)
  }

  @Test(
    "a URL that needs any change is not a plain URI",
    arguments: [
      "https://example.com", "HTTPS://example.com/", "https://Example.com/", "https://example.com:443/", "http://example.com:80/",
      "https://example.com:/", "https://example.com:070/", "https://example.com:0/", "https://example.com:65536/",
      "https://example.com:99999999999999999999/", "https://u:p@example.com/", "https://example.com/#part", "https://[::1]/",
      "https://b%C3%BCcher.example/", "ftp://example.com/", "http:///a", "https:/", "file:///tmp/a", "data:,x", "httpx://a/",
      "//example.com/a", "a/b", "http://",
    ])
  func unusual(_ text: String) throws {
    #expect(ResourceID.plainURI(of: try #require(URL(string: text))) == nil)
  }

  @Test("for 30,000 random URLs, a plain URI equals the URI of the request")
  func agreement() throws {
    let parts = [
      "http", "https", "HTTP", "file", "ws", ":", "//", "/", "example.com", "Example", "a", "Z", "0", "80", "443", "8080",
      "70000",
      "065", "?", "#", "@", "user:word", "[::1]", "%41", "%2F", "%2f", "%", "..", ".", ";", "=", "&", "+", "~", "_", "-", " ",
      "ü", "b%C3%BCcher.example",
      "\u{1F}", "\\", "|", "'", "(", "*", ",", "xn--bcher-kva", "127.1", "0x7f",
    ]
    let beginnings = ["", "http://", "https://", "https://example.com", "http://example.com/", "https://example.com:8080/a"]
    let base = try #require(URL(string: "https://base.example/one/two?three"))
    var generator = Sequence(state: 1)
    var taken = 0
    for _ in 0..<30_000 {
      var text = beginnings.randomElement(using: &generator) ?? ""
      for _ in 0..<Int.random(in: 0...8, using: &generator) { text += parts.randomElement(using: &generator) ?? "" }
      for url in [URL(string: text), URL(string: text, relativeTo: base)].compactMap(\.self) {
        guard let plain = ResourceID.plainURI(of: url) else { continue }
        taken += 1
        #expect(named(by: url) == plain, "\(url)")
        let request = try HTTPRequest(resource: url)
        #expect(try request == HTTPRequest(parsing: url), "\(url)")
        #expect(ResourceID.isURI(plain, of: request) && !ResourceID.isURI(plain + "x", of: request), "\(url)")
        #expect(!ResourceID.isURI(String(plain.dropLast()), of: request), "\(url)")
      }
    }
    #expect(taken > 5_000)
  }

  /// SplitMix64 with a fixed seed, so that each run uses the same numbers.
  private struct Sequence: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var bits = state
      bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
      bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
      return bits ^ bits >> 31
    }
  }
}
