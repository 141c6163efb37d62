#if Server
import CacheTesting
import HTTPTypes
import NIOCore
import Testing

@testable import HTTPServing

@Suite("The request parser")
struct RequestParserTests {
  /// Returns the parsed requests as lines: "METHOD target", "body ..." and "end".
  private static func read(_ bytes: ByteBuffer, inPieces size: Int = .max) throws(RequestRefusal) -> [String] {
    var parser = RequestParser()
    var rest = bytes
    var parts: [String] = []
    while let piece = rest.readSlice(length: min(size, rest.readableBytes)), piece.readableBytes > 0 {
      parser.append(piece)
      while let part = try parser.next() {
        switch part {
        case .head(let head): parts.append("\(head.request.method) \(head.request.path ?? "")")
        case .body(let bytes):
          let text = String(buffer: bytes)
          if let last = parts.last, last.hasPrefix("body ") {
            parts[parts.count - 1] = last + text
          } else {
            parts.append("body " + text)
          }
        case .end: parts.append("end")
        }
      }
    }
    return parts
  }

  private static func head(_ text: String) throws -> RequestHead {
    var parser = RequestParser()
    parser.append(ByteBuffer(string: text))
    guard case .head(let head) = try parser.next() else { throw RequestRefusal.malformed("no head") }
    return head
  }

  @Test("consecutive requests are parsed, regardless of the size of the pieces", arguments: [Int.max, 1, 2, 3, 7])
  func pieces(size: Int) throws {
    let text =
      "\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
      + "\r\nPUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: 1\r\n\r\n"
      + "FROB /d?e=f HTTP/1.0\r\n\r\n"
    let expected = [
      "GET /a", "end", "POST /b", "body hello", "end", "PUT /c", "body abc0123456789", "end", "FROB /d?e=f", "end",
    ]
    #expect(try Self.read(ByteBuffer(string: text), inPieces: size) == expected)
  }

  @Test("fields keep their order, repetitions, spelling and bytes")
  func fields() throws {
    var bytes = ByteBuffer(string: "GET / HTTP/1.1\r\nhOsT: h\r\nB: 2\r\na:1 \t\r\nB:  2,3\r\nEmpty:\r\nLatin: ")
    bytes.writeBytes([0xE9, 0x20, 0xFF])
    bytes.writeString("\r\n\r\n")
    var parser = RequestParser()
    parser.append(bytes)
    guard case .head(let head) = try parser.next() else { throw RequestRefusal.malformed("no head") }
    #expect(head.request.headerFields.map(\.name.rawName) == ["hOsT", "B", "a", "B", "Empty", "Latin"])
    #expect(head.request.headerFields.prefix(5).map(\.value) == ["h", "2", "1", "2,3", ""])
    #expect(head.request.headerFields.last?.withUnsafeBytesOfValue { Array($0) } == [0xE9, 0x20, 0xFF])
  }

  @Test(
    "ambiguous or invalid requests are refused (RFC 9112 §2.2, §3, §5, §6)",
    arguments: [
      ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
      ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n", 501),
      ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
      ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA: b\u{0}c\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA: b\u{7F}\r\n\r\n", 400),
      ("GET / HTTP/1.1\nHost: h\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: h\r\nA(b): c\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
      ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET / /b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET /\u{E9} HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET /\r\n\r\n", 400),
      ("GET / HTTP/1\r\nHost: h\r\n\r\n", 400),
      ("GET / http/1.1\r\nHost: h\r\n\r\n", 400),
      ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
      ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
      ("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", 501),
      ("\u{16}\u{3}\u{1}\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\nA\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1 x\r\nA\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nAB\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA b\r\n\r\n", 400),
    ])
  func refused(text: String, status: Int) {
    for size in [Int.max, 1] {
      let refusal = #expect(throws: RequestRefusal.self) { try Self.read(ByteBuffer(string: text), inPieces: size) }
      #expect(refusal?.status.code == status)
    }
  }

  @Test("a head is refused as soon as its bytes, its fields or its target exceed a limit")
  func limits() throws {
    let many = "GET / HTTP/1.1\r\nHost: h\r\n" + String(repeating: "A: b\r\n", count: 256) + "\r\n"
    #expect(throws: RequestRefusal.fieldsTooLarge("more than 256 fields")) { try Self.head(many) }
    let long = "GET / HTTP/1.1\r\nHost: h\r\nA: " + String(repeating: "b", count: 64 * 1024)
    #expect(throws: RequestRefusal.fieldsTooLarge("the header section has more than 65536 bytes")) { try Self.head(long) }
    let target = "GET /" + String(repeating: "a", count: 16 * 1024) + " HTTP/1.1\r\nHost: h\r\n\r\n"
    for text in [target, String(repeating: "a", count: 65536)] {
      let refusal = #expect(throws: RequestRefusal.self) { try Self.head(text) }
      #expect(refusal?.status.code == 414)
    }
    let trailer =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: " + String(repeating: "b", count: 65536)
    let refusal = #expect(throws: RequestRefusal.self) { try Self.read(ByteBuffer(string: trailer)) }
    #expect(refusal?.status.code == 431)
    let fits = "GET /" + String(repeating: "a", count: 16 * 1024 - 1) + " HTTP/1.1\r\nHost: h\r\n"
    #expect(try Self.head(fits + String(repeating: "A: b\r\n", count: 255) + "\r\n").request.headerFields.count == 256)
  }

  @Test("no request is parsed after a refusal")
  func final() {
    var parser = RequestParser()
    parser.append(ByteBuffer(string: "BAD\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"))
    for _ in 0..<2 { #expect(throws: RequestRefusal.self) { try parser.next() } }
  }

  @Test(
    "the host is taken from an absolute target, or else from Host (RFC 9112 §3.2.2)",
    arguments: [
      ("GET http://a.example:81/p?q HTTP/1.1\r\nHost: b\r\n\r\n", "a.example:81", "/p?q"),
      ("GET HTTP://a?q HTTP/1.1\r\nHost: b\r\n\r\n", "a", "/?q"),
      ("GET https://[::1]:8443 HTTP/1.1\r\nHost: b\r\n\r\n", "[::1]:8443", "/"),
      ("GET //a/b HTTP/1.1\r\nHost: b:\r\n\r\n", "b:", "//a/b"),
      ("GET /../a/./%2e%2F|{}?[x]= HTTP/1.1\r\nHost: b\r\n\r\n", "b", "/../a/./%2e%2F|{}?[x]="),
      ("OPTIONS * HTTP/1.1\r\nHost: b\r\n\r\n", "b", "*"),
    ])
  func targets(text: String, authority: String, path: String) throws {
    let request = try Self.head(text).request
    #expect(request.authority == authority)
    #expect(request.path == path)
  }

  @Test("an HTTP/1.0 client may omit Host")
  func withoutHost() throws {
    #expect(try Self.head("GET /a HTTP/1.0\r\n\r\n").request.authority == nil)
  }

  @Test(
    "the version and Connection decide whether the connection stays open (RFC 9112 §9.3)",
    arguments: [
      ("1.1", "", true), ("1.1", "Connection: close\r\n", false), ("1.1", "Connection: x, Close\r\n", false),
      ("1.1", "Connection: x\r\n", true), ("1.0", "", false), ("1.0", "Connection: keep-alive\r\n", true),
      ("1.0", "Connection: keep-alive, close\r\n", false),
    ])
  func connection(version: String, line: String, stays: Bool) throws {
    #expect(try Self.head("GET / HTTP/\(version)\r\nHost: h\r\n\(line)\r\n").keepsAlive == stays)
  }

  @Test("random bytes cause no trap, and no parsing after a refusal")
  func random() {
    var generator = SplitMix(state: 1)
    let seeds = [
      "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ]
    for round in 0..<3000 {
      var bytes = Array((seeds[round % seeds.count]).utf8)
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        bytes[Int.random(in: 0..<bytes.count, using: &generator)] =
          [
            0, 10, 13, 32, 9, 44, 58, 59, 255, UInt8.random(in: 0...255, using: &generator),
          ].randomElement(using: &generator) ?? 0
      }
      let whole = Result { () throws(RequestRefusal) in try Self.read(ByteBuffer(bytes: bytes)) }
      let split = Result { () throws(RequestRefusal) in try Self.read(ByteBuffer(bytes: bytes), inPieces: 1) }
      #expect(whole == split, "\(bytes)")
    }
  }
}
#endif
