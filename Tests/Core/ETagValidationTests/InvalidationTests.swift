import CacheCore
import ETagValidation
import HTTPTypes
import Testing

@Suite("Invalidation of stored responses")
struct InvalidationTests {
  private func invalidated(_ request: HTTPRequest, _ response: HTTPResponse) -> [String] {
    var cache = CacheFixture()
    _ = cache.load(request) { _ in .success(response) }
    return cache.invalidated
  }

  @Test(
    "a successful unsafe method invalidates its target, and an unknown method counts as unsafe",
    arguments: ["POST", "PUT", "DELETE", "PATCH", "FROBNICATE", "get"])
  func unsafe(name: String) throws {
    let method = try #require(HTTPRequest.Method(name))
    for status in [200, 201, 204, 301, 303] { #expect(invalidated(.page(method), .head(status)) == ["https://example.com/page"]) }
    for status in [100, 400, 404, 409, 500, 503] { #expect(invalidated(.page(method), .head(status)).isEmpty) }
  }

  @Test("safe methods invalidate nothing", arguments: [HTTPRequest.Method.get, .head, .options, .trace])
  func safe(method: HTTPRequest.Method) {
    #expect(invalidated(.page(method), .ok("Location: /b", "Cache-Control: no-store")).isEmpty)
  }

  @Test(
    "Location and Content-Location of the same origin are invalidated too, in any notation",
    arguments: [
      ("/b", "https://example.com/b"), ("b", "https://example.com/a/b"), ("../b", "https://example.com/b"),
      ("./b?q", "https://example.com/a/b?q"),
      ("../../../b", "https://example.com/b"), ("?q", "https://example.com/a/page?q"), ("#x", nil), ("", nil),
      ("b#x?y", "https://example.com/a/b"),
      ("//example.com/b", "https://example.com/b"), ("HTTPS://EXAMPLE.com:443/b", "https://example.com/b"),
      ("/a:b", "https://example.com/a:b"),
      ("https://u:p@example.com/b", "https://example.com/b"), ("https://example.com", "https://example.com/"),
      ("b/..", "https://example.com/a/"), ("//example.com/c/../b", "https://example.com/b"),
      ("https://example.com/c/../b", "https://example.com/b"),
      (".", "https://example.com/a/"), ("https://other.com/b", nil), ("//other.com/b", nil), ("http://example.com/b", nil),
      ("https://example.com:8443/b", nil), ("mailto:a@example.com", nil), ("https:///b", nil),
      ("https://example.com@other.com/", nil),
    ] as [(String, String?)])
  func locations(reference: String, resource: String?) {
    let target = "https://example.com/a/page"
    let request = HTTPRequest.page(.post, path: "/a/page")
    for name in ["Location", "Content-Location"] {
      let expected = [target] + (resource.map { [$0] } ?? [])
      #expect(invalidated(request, .head(201, "\(name): \(reference)")) == expected)
    }
  }

  @Test("an international host in Location matches the same origin in any spelling")
  func internationalLocation() {
    let request = HTTPRequest(method: .post, scheme: "https", authority: "xn--bcher-kva.example", path: "/a")
    for location in ["https://b%C3%BCcher.example/b", "//BÜCHER.example:443/b"] {
      let outdated = invalidated(request, .head(201, "Location: \(location)"))
      #expect(outdated == ["https://xn--bcher-kva.example/a", "https://xn--bcher-kva.example/b"])
    }
  }

  @Test(
    "a new response that must not be stored invalidates the stored one that it replaces",
    arguments: ["Cache-Control: no-store", "Vary: *"])
  func unstorableReplacement(line: String) {
    var cache = CacheFixture()
    _ = cache.load { _ in .success(.ok()) }
    _ = cache.load { _ in .success(.ok(line)) }
    #expect(cache.invalidated == ["https://example.com/page"])
    #expect(cache.shareable == [false])
  }

  @Test("such a response invalidates nothing if none matched or if only this request forbids storing")
  func unstorableWithoutReplacement() {
    #expect(invalidated(.page(), .ok("Cache-Control: no-store")).isEmpty)
    var cache = CacheFixture()
    _ = cache.load { _ in .success(.ok()) }
    _ = cache.load(.page(.get, "Cache-Control: no-store")) { _ in .success(.ok()) }
    #expect(cache.invalidated.isEmpty)
  }
}
