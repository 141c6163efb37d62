import CacheCore
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Requests for URLs")
struct RequestURLTests {
  private func request(_ text: String) throws -> HTTPRequest { try HTTPRequest(resource: #require(URL(string: text))) }

  @Test(
    "a request has the scheme, the authority and the path of its URL",
    arguments: [
      ("http://example.com", "http", "example.com", "/"),
      ("HTTPS://Example.com/A", "https", "Example.com", "/A"),
      ("http://example.com:8080/a/b?c=d&e#part", "http", "example.com:8080", "/a/b?c=d&e"),
      ("http://example.com?q", "http", "example.com", "/?q"),
      ("http://example.com/a%20b%2Fc?d=%26", "http", "example.com", "/a%20b%2Fc?d=%26"),
      ("http://[::1]/x", "http", "[::1]", "/x"),
      ("http://[2001:db8::1]:8080/x", "http", "[2001:db8::1]:8080", "/x"),
      ("http://127.0.0.1:65535/", "http", "127.0.0.1:65535", "/"),
      ("file:///tmp/a%20b", "file", nil, "/tmp/a%20b"),
      ("data:text/plain,a%20b", "data", nil, "text/plain,a%20b"),
      ("DATA:,x", "data", nil, ",x"),
      ("data:text/plain,a#part", "data", nil, "text/plain,a"),
    ] as [(String, String, String?, String)])
  func parts(_ text: String, _ scheme: String, _ authority: String?, _ path: String) throws {
    let request = try request(text)
    #expect(request.scheme == scheme)
    #expect(request.authority == authority)
    #expect(request.path == path)
    #expect(request.method == .get)
  }

  @Test(
    "a request leads back to its URL",
    arguments: [
      "http://example.com/", "https://example.com:8443/a?b=c", "http://[::1]:8080/", "file:///tmp/a%20b", "data:text/plain,a%20b",
    ])
  func back(_ text: String) throws {
    #expect(try request(text).absoluteURL?.absoluteString == text)
  }

  @Test(
    "user information becomes Basic credentials (RFC 7617) and is not part of the authority",
    arguments: [
      ("http://user:pass@example.com/", "user:pass"), ("http://user@example.com/", "user:"),
      ("http://a%3Ab:c%40d@example.com/", "a:b:c@d"),
    ])
  func credentials(_ text: String, _ credential: String) throws {
    let request = try request(text)
    #expect(request.authority == "example.com")
    #expect(request.headerFields[.authorization] == "Basic \(Data(credential.utf8).base64EncodedString())")
    #expect(request.absoluteURL?.absoluteString == "http://example.com/")
  }

  @Test("the caller's own credentials take precedence over user information")
  func ownCredentials() throws {
    let url = try #require(URL(string: "http://user:pass@example.com/"))
    let request = try HTTPRequest(resource: url, method: .head, headerFields: [.authorization: "Bearer x"])
    #expect(request.headerFields[.authorization] == "Bearer x")
    #expect(request.method == .head)
  }

  @Test(
    "a relative URL, or one without a host or with an impossible port, is refused with the URL",
    arguments: ["a/b", "/a", "//host/a", "http:///a", "http:a", "http://example.com:70000/", "http://example.com:0/"])
  func refused(_ text: String) throws {
    let url = try #require(URL(string: text))
    let error = #expect(throws: CacheError.self) { _ = try HTTPRequest(resource: url) }
    #expect(error?.code == .invalidURL)
    #expect(error?.url == text)
  }

  @Test(
    "the error of an invalid URL has no user information",
    arguments: [
      ("https://ada:secret@example.com:99999/a", "https://example.com:99999/a"), ("https://ada:secret@/a", "https:///a"),
      ("https://ada:secret@exa mple:x/a", "https://exa mple:x/a"), ("//ada:sec/ret@example.com", "//example.com"),
    ])
  func secretText(_ text: String, _ expected: String) {
    let error = #expect(throws: CacheError.self) { try ResourceRequest(text) }
    #expect(error?.code == .invalidURL)
    #expect(error.map { !"\($0)".contains("secret") && $0.url?.contains("secret") == false } == true)
    if error?.url?.contains("%") == false { #expect(error?.url == expected) }
  }

  @Test("invalid text is refused with an error that has the text", arguments: ["", "a b", "no scheme", "http://"])
  func text(_ text: String) {
    let error = #expect(throws: CacheError.self) { _ = try ResourceRequest(text) }
    #expect(error?.code == .invalidURL)
    #expect(error?.url != nil)
  }

  @Test("a request from valid text has its URL, method and fields")
  func soundText() throws {
    let request = try ResourceRequest("https://example.com/a", method: .head, headerFields: [.accept: "image/png"])
    #expect(request.url.absoluteString == "https://example.com/a")
    #expect(request.method == .head)
    #expect(request.headerFields[.accept] == "image/png")
  }
}
