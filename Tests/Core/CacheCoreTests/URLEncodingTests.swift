import Foundation
import HTTPTypes
import Testing

@testable import CacheCore

@Suite("URLs from text with bytes that a URL cannot have")
struct URLEncodingTests {
  @Test(
    "invalid bytes are encoded, and existing escapes stay",
    arguments: [
      ("http://h/z?f[]=a%20b", "http://h/z?f%5B%5D=a%20b"), ("http://h/a%20b c", "http://h/a%20b%20c"),
      ("http://h/z?u=http%3A%2F%2Fx&t=\"q\"", "http://h/z?u=http%3A%2F%2Fx&t=%22q%22"), ("http://h/é%20x", "http://h/%C3%A9%20x"),
      ("http://h/e\u{301}%2f", "http://h/e%CC%81%2f"), ("http://h/a|b\\c^`{}<>", "http://h/a%7Cb%5Cc%5E%60%7B%7D%3C%3E"),
      ("http://h/a[1]%5B", "http://h/a%5B1%5D%5B"), ("http://h/%", "http://h/%25"), ("http://h/%zz%4", "http://h/%25zz%254"),
      ("http://h/%%20", "http://h/%25%20"), ("http://h/%2520%", "http://h/%2520%25"),
      ("http://h/a\tb\nc\u{7F}\0", "http://h/a%09b%0Ac%7F"),
      ("http://h/a?b?c#d?e#f", "http://h/a?b?c#d?e%23f"), ("http://h?a b", "http://h?a%20b"),
      ("http://h#a b%20", "http://h#a%20b%20"),
      ("http://[::1]:80/a[b]?[%5d]#[%5D]", "http://[::1]:80/a%5Bb%5D?%5B%5d%5D#%5B%5D%5D"),
      ("http://[fe80::1%eth0]/[", "http://[fe80::1%25eth0]/%5B"), ("http://[fe80::1%25eth0]/[", "http://[fe80::1%25eth0]/%5B"),
      ("http://ü:p@ss%40@h/ ü", "http://%C3%BC:p%40ss%40@h/%20%C3%BC"),
      ("http://bücher.example:8080/ü%20", "http://xn--bcher-kva.example:8080/%C3%BC%20"),
      ("http://b%C3%BCcher.example/[%20]", "http://b%C3%BCcher.example/%5B%20%5D"),
      ("data:text/plain,a b%20", "data:text/plain,a%20b%20"),
      ("asset://My%20Folder/a b%20", "asset://My%20Folder/a%20b%20"), ("file:///tmp/a b%20", "file:///tmp/a%20b%20"),
    ])
  func encoded(_ text: String, _ expected: String) {
    #expect(URL(encoding: text)?.absoluteString == expected)
  }

  @Test("spaces and control characters at both ends are dropped, as in browsers")
  func ends() {
    #expect(URL(encoding: " \t\r\n\0http://h/a%20b c \n")?.absoluteString == "http://h/a%20b%20c")
    #expect(URL(encoding: "http://h/a%20 ")?.absoluteString == "http://h/a%20")
  }

  @Test(
    "a valid URL is unchanged",
    arguments: ["http://h/a%20b?c=%5B#d", "http://h/a//b/../c;x=1,2", "urn:a:b", "?q", "#f", "a/b", "http://h/'()*!$"])
  func unchanged(_ text: String) {
    #expect(URL(encoding: text)?.absoluteString == text)
    #expect(URL(encoding: Array(text.utf8))?.absoluteString == text)
  }

  @Test(
    "text whose host is not a host is no URL",
    arguments: [
      "", " ", "http://a b/", "http://a|b/", "http://[::1/", "http://h]/", "http://h:8x/", "http://ü..h/", "http://h%/",
      "http://h\\@evil.example/",
      "http://h\\evil.example/", "http://\\h/", "http://ü\\@h/",
    ])
  func refused(_ text: String) {
    #expect(URL(encoding: text) == nil)
    #expect(throws: CacheError.self) { _ = try ResourceRequest(text) }
  }

  @Test("bytes that are not UTF-8 are encoded in the path and the query, and refused in the host")
  func otherBytes() {
    #expect(URL(encoding: Array("http://h/caf".utf8) + [0xE9, 0x3F, 0xFF])?.absoluteString == "http://h/caf%E9?%FF")
    #expect(URL(encoding: Array("http://caf".utf8) + [0xE9] + Array(".example/".utf8)) == nil)
  }

  @Test(
    "a relative reference is resolved without encoding it again",
    arguments: [
      ("c d%20e", "http://h/a/c%20d%20e"), ("/t/a%20b c", "http://h/t/a%20b%20c"), ("?f[]=%20", "http://h/a/b?f%5B%5D=%20"),
      ("//bücher.example/ü%20", "http://xn--bcher-kva.example/%C3%BC%20"), ("//[::1]/[", "http://[::1]/%5B"),
      ("../x y", "http://h/x%20y"),
      ("10:30 h.png", "http://h/a/10:30%20h.png"), ("1a:b", "http://h/a/1a:b"), (" /x ", "http://h/x"),
      ("#a#b", "http://h/a/b?q#a%23b"),
      ("https://o/%5B[", "https://o/%5B%5B"), ("/\\evil.example", "http://h/%5Cevil.example"),
    ])
  func relative(_ text: String, _ expected: String) throws {
    let base = try #require(URL(string: "http://h/a/b?q"))
    #expect(URL(encoding: text, relativeTo: base)?.absoluteURL.absoluteString == expected)
  }

  @Test("a request has the escapes of its text, and its URL those of its path")
  func requests() throws {
    let request = try ResourceRequest("http://h/t/é%20x?f[]=a%20b")
    #expect(try HTTPRequest(resource: request.url).path == "/t/%C3%A9%20x?f%5B%5D=a%20b")
    let received = HTTPRequest(method: .get, scheme: "http", authority: "h", path: "/a%20b|?[%20]")
    #expect(received.absoluteURL?.absoluteString == "http://h/a%20b%7C?%5B%20%5D")
  }

  @Test("a port that is too large for a number is refused, and does not become the scheme's port")
  func port() throws {
    for text in ["http://h:99999999999999999999/a", "http://u:1@[::1]:99999999999999999999/"] {
      let url = try #require(URL(string: text))
      #expect(throws: CacheError.self) { _ = try HTTPRequest(resource: url) }
    }
    for text in ["http://h:/a", "http://u:1@h/", "http://[::1]/", "http://[::1]:/"] {
      _ = try HTTPRequest(resource: #require(URL(string: text)))
    }
  }

  /// Decodes the escapes of a text, and leaves any other percent sign.
  private func decoded(_ bytes: [UInt8]) -> [UInt8] {
    var (result, rest) = ([UInt8](), bytes[...])
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2)
      if byte == UInt8(ascii: "%"), digits.count == 2, !"+-".utf8.contains(digits.first ?? 0),
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
      {
        result.append(value)
        rest = rest.dropFirst(2)
      } else {
        result.append(byte)
      }
    }
    return result
  }

  @Test("the encoded form of arbitrary bytes is stable and stands for the same bytes", arguments: 0..<8)
  func arbitrary(seed: UInt64) {
    var generator = SeededGenerator(state: seed)
    let pieces = ["%", "%2", "%41", "%ff", "[", "]", "#", "?", "/", "\\", " ", "é", "|", "\"", "@", ":", "//", "..", "a"].map {
      Array($0.utf8)
    }
    for _ in 0..<2_000 {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0...8, using: &generator) {
        bytes +=
          Bool.random(using: &generator)
          ? pieces.randomElement(using: &generator) ?? [] : [.random(in: .min ... .max, using: &generator)]
      }
      // Anything may be a reference, and after a host everything is a path, a query or a fragment.
      _ = URL(encoding: bytes)
      let path = bytes.filter { $0 != UInt8(ascii: "#") } + [UInt8(ascii: ".")]
      let text = URL(encoding: Array("http://h/".utf8) + path)?.absoluteString ?? ""
      #expect(URL(encoding: text)?.absoluteString == text)
      #expect(decoded(Array(text.utf8)) == decoded(Array("http://h/".utf8) + path))
    }
  }
}
