#if AsyncHTTP && Origin
import AsyncHTTPClient
import AsyncHTTPNetworking
import CacheCore
import Foundation
import HTTPTypes
import LoopbackOrigin
import NIOCore
import Testing

@Suite("Responses that are not quite HTTP", .timeLimit(.minutes(30)))
struct MalformedResponseTests {
  private typealias Outcome = Result<(HTTPResponse, String), CacheError>

  /// Serves these bytes and returns the response with its body, or the error. The downloader must be usable afterwards.
  private func result(of bytes: String, method: HTTPRequest.Method = .get) async throws -> Outcome {
    var result = Outcome.failure(.cancelled)
    try await Fixture.run { fixture in
      fixture.origin.setRoute("/raw", .fault(.raw(Data(bytes.utf8))))
      fixture.origin.setRoute("/sound", Route(Data("sound".utf8)))
      let request = try fixture.request("/raw", method: method)
      do throws(CacheError) {
        let response = try await fixture.downloader.download(request)
        result = .success((response.head, String(decoding: try await response.body.collect(), as: UTF8.self)))
      } catch {
        result = .failure(error)
      }
      #expect(await fixture.failure(of: try fixture.request("/sound")) == nil)
    }
    return result
  }

  private func expectRefusal(of bytes: String, because reason: String, method: HTTPRequest.Method = .get) async throws {
    switch try await result(of: bytes, method: method) {
    case .success((let head, let body)): Issue.record("\(head.status) with \(body.debugDescription)")
    case .failure(let error):
      #expect(error.code == .malformedResponse)
      #expect(error.reason.contains(reason))
    }
  }

  @Test(
    "a status below 100 is an error, whatever follows it",
    arguments: [
      "HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 001 X\r\n\r\n",
      "HTTP/1.1 050 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 099 X\r\nContent-Length: 1\r\n\r\nx",
      "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 012 X\r\n\r\nuntil the end",
      "HTTP/1.0 099 X\r\n\r\nuntil the end",
      "HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ])
  func smallStatus(bytes: String) async throws {
    for method in [HTTPRequest.Method.get, .head] {
      try await expectRefusal(of: bytes, because: "invalid status", method: method)
    }
  }

  @Test("a response to a request with a body has a valid status too")
  func smallStatusOfUpload() async throws {
    try await Fixture.run { fixture in
      fixture.origin.setRoute("/raw", .fault(.raw(Data("HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok".utf8))))
      let request = try fixture.request("/raw", method: .post, body: ResourceBody(Data("body".utf8)))
      #expect(await fixture.failure(of: request)?.code == .malformedResponse)
    }
  }

  @Test("a guarded client of the caller refuses an invalid status, and calls its own initializer")
  func ownClient() async throws {
    let initialized = Lock(0)
    var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
    configuration.http1_1ConnectionDebugInitializer = { channel in
      initialized.withLock { $0 += 1 }
      return channel.eventLoop.makeSucceededVoidFuture()
    }
    AsyncHTTPDownloader.guardResponses(of: &configuration)
    let client = HTTPClient(configuration: configuration)
    try await Fixture.run(AsyncHTTPDownloader(client: client, idleTimeout: .seconds(3_600))) { fixture async throws in
      fixture.origin.setRoute("/raw", .fault(.raw(Data("HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nok".utf8))))
      let request = try fixture.request("/raw")
      #expect(await fixture.failure(of: request)?.code == .malformedResponse)
    }
    try await client.shutdown()
    #expect(initialized.withLock { $0 } == 1)
  }

  @Test(
    "a status that is not three digits is an error",
    arguments: [
      "HTTP/1.1 1000 X", "HTTP/1.1 99 X", "HTTP/1.1 -1 X", "HTTP/1.1  X", "HTTP/1.1 2x0 X", "HTTP/1.1", "HTTP/2.0 200 OK",
    ])
  func noStatus(line: String) async throws {
    try await expectRefusal(of: line + "\r\nContent-Length: 2\r\n\r\nok", because: "not HTTP")
  }

  @Test("a switch of protocols, which was not requested, is an error")
  func switching() async throws {
    for fields in ["", "Upgrade: h2c\r\nConnection: Upgrade\r\n", "Content-Length: 2\r\n"] {
      try await expectRefusal(of: "HTTP/1.1 101 Switching Protocols\r\n\(fields)\r\nok", because: "101")
    }
  }

  @Test(
    "a transfer coding is undone or an error",
    arguments: [
      ("chunked", true), ("Chunked", true), ("chunked\t", true), (" \t chunked \t ", true), ("chunked ,", true),
      (", ,chunked,\t,", true), ("identity, chunked", true), ("chunked\r\nTransfer-Encoding: identity", true),
      ("\r\n chunked", true),
      ("gzip, chunked", false), ("gzip", false), ("chunked, gzip", false), ("chunked, chunked", false),
      ("chunked\r\nTransfer-Encoding: chunked", false), ("gzip\r\nTransfer-Encoding: chunked", false),
      ("chunked\r\nX: y\r\nTransfer-Encoding:\tdeflate", false), ("xchunked", false), ("chunkedx", false), ("\"chunked\"", false),
      ("chunked;q=1", false), ("chu nked", false), ("chunked\u{0B}", false), ("x\r\n\t, chunked", false),
    ])
  func transferCoding(value: String, isUndone: Bool) async throws {
    for version in ["1.1", "1.0"] {
      let bytes = "HTTP/\(version) 200 OK\r\nTransfer-Encoding: \(value)\r\nX: y\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
      switch try await result(of: bytes) {
      case .success((_, let body)):
        #expect(isUndone)
        #expect(body == "hello")
      case .failure(let error):
        #expect(!isUndone, "\(error)")
        #expect(error.code == .malformedResponse)
      }
    }
  }

  @Test("a coding that means none leaves the length")
  func identity() async throws {
    for fields in ["Transfer-Encoding: identity\r\nContent-Length: 5", "Content-Length: 5\r\nTransfer-Encoding: ,"] {
      #expect(try await result(of: "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nhello and more").get().1 == "hello")
    }
  }

  @Test(
    "blanks and folds that RFC 9112 tells a client to accept or to repair are no part of the fields",
    arguments: [
      ("X-A: 1\r\nContent-Length: 5", "1"), ("X-A: 1\t\r\nContent-Length: 5\t", "1"), ("X-A:1\r\nContent-Length:5 \t ", "1"),
      ("X-A: 1\r\n 2\r\nContent-Length: 5", "1 2"), ("X-A: 1 \r\n\t 2\t\r\n   3\r\nContent-Length: 5", "1 2 3"),
      ("X-A:\r\n 1\r\nContent-Length:\r\n\t5", "1"), ("X-A: 1\r\n \r\nContent-Length: 5", "1"),
      ("X-A : 1\r\nContent-Length \t: 5", "1"), ("X-A : 1\r\n 2\r\nContent-Length: 5", "1 2"),
      ("Content-Length: 5\r\nX-A: 1\r\nContent-Length: 5", "1"), ("X-A: 1\r\nContent-Length: 5, 5", "1"),
      ("Content-Length: 5, 5,\r\nX-A: 1\r\ncontent-length : 005", "1"), ("X-A: 1\r\nTransfer-Encoding : chunked", "1"),
    ])
  func repaired(fields: String, value: String) async throws {
    let body = fields.contains("chunked") ? "5\r\nhello\r\n0\r\n\r\n" : "hello"
    let (head, received) = try await result(of: "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n\(body)").get()
    let name = try #require(HTTPField.Name("X-A"))
    #expect(head.headerFields[name] == value)
    #expect(received == "hello")
  }

  @Test("a folded trailer and blanks after chunk sizes are accepted")
  func chunkBlanks() async throws {
    let chunks = "2  \r\nhe\r\n1\t;a=b\r\nl\r\n1;a = \"b;c\" \r\nl\r\n1;\r\no\r\n0 \t\r\nX-Sum: 1\r\n 2\r\n\r\n"
    #expect(try await result(of: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)").get().1 == "hello")
  }

  @Test(
    "fields without one meaning are an error",
    arguments: [
      "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 5, 6", "Content-Length: 5\r\nContent-Length : 6",
      "Content-Length: 5\r\nContent-Length:\r\n 6", "Content-Length: +5", "Content-Length: 5 5", "Content-Length: 5\r\n 5",
      "Content-Length: 0x5", "Content-Length: 99999999999999999999", "Content-Length: -5", " X-A: 1\r\nContent-Length: 5",
      " Content-Length: 5", "Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nX A: 1",
      "Content-Length: 5\r\n: 1", "Content-Length: 5\r\nX-A", "Content-Length: 5\r\nX-A\r\n : 1", "Content-Length: 5\n",
      "Content-Length: 5\nX-A: 1", "Transfer-Encoding: chunked\nX-A: 1", "X-A : 1\nContent-Length: 5",
      "X-A: a\n b\r\nContent-Length: 5", "X-A: a\r\n b\nContent-Length: 5", "X-A: 1\nContent-Length: 5",
    ])
  func ambiguous(fields: String) async throws {
    try await expectRefusal(of: "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nhello", because: "not HTTP")
  }

  @Test(
    "a status line with a bare CR is an error",
    arguments: [
      "200\r\r\r\nA : b\r\n\r\n", "200\r\r\r\nContent-Length: 3, 3\r\n c\r\n\r\n",
      "200 OK\r\rContent-Length: 7\r\nX-A: 1\r\n\r\nhello", "200 O\rK\r\nContent-Length: 5\r\n\r\nhello",
    ])
  func bareReturn(rest: String) async throws {
    try await expectRefusal(of: "HTTP/1.1 \(rest)", because: "not HTTP")
  }

  @Test(
    "a transfer coding of a response without a body has no effect", arguments: ["gzip, chunked", "gzip", "chunked, chunked"])
  func codingWithoutBody(coding: String) async throws {
    let fields = "Transfer-Encoding: \(coding)\r\nETag: \"a\"\r\n\r\n"
    for (status, method) in [("200 OK", HTTPRequest.Method.head), ("304 Not Modified", .get), ("204 No Content", .get)] {
      let (head, body) = try await result(of: "HTTP/1.1 \(status)\r\n\(fields)", method: method).get()
      #expect(head.headerFields[.eTag] == "\"a\"" && body.isEmpty)
    }
  }

  @Test("an HTTP/1.0 response with a transfer coding ends its connection, which still names other hop-by-hop fields")
  func oldVersion() async throws {
    let bytes = """
      HTTP/1.0 200 OK\r\nConnection: X-A, Keep-Alive\r\nX-A: 1\r\nX-B: 2\r\nTransfer-Encoding: chunked\r\n\r
      5\r\nhello\r\n0\r\n\r\n
      """
    let (head, body) = try await result(of: bytes).get()
    #expect(body == "hello")
    #expect(head.headerFields[.connection] == "X-A, close")
  }

  @Test(
    "an invalid chunk size is an error",
    arguments: ["5 5", "5 x", "5 ;a\rb", "x", " 5", "5\u{0B}", "0x5", "-5", "FFFFFFFFFFFFFFFFF", "5\r\nhelloo"])
  func chunkSize(size: String) async throws {
    switch try await result(of: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(size)\r\nhello\r\n0\r\n\r\n") {
    case .success((_, let body)): Issue.record("\(body.debugDescription)")
    case .failure(let error): #expect([.malformedResponse, .truncatedBody].contains(error.code))
    }
  }

  @Test("a response that is not HTTP is refused at its first bytes, without a line break or an end")
  func unterminated() async throws {
    try await Fixture.run { fixture in
      for bytes in ["SSH-2.0-OpenSSH", "\u{16}\u{3}\u{1}", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX"] {
        fixture.origin.setRoute("/raw", .fault(.raw(Data(bytes.utf8), thenCloses: false)))
        let error = await fixture.failure(of: try fixture.request("/raw"))
        #expect(error?.code == .malformedResponse)
      }
    }
  }

  @Test("a kept connection is repaired again for the next response")
  func keptConnection() async throws {
    try await Fixture.run(.init { $0.connectionsPerHost = 1 }) { fixture async throws in
      let bytes = "HTTP/1.1 200 OK\r\nX-A : 1\r\nContent-Length: 5\t\r\n\r\nhello"
      fixture.origin.setRoute("/raw", .fault(.raw(Data(bytes.utf8), thenCloses: false)))
      for _ in 0..<3 {
        let body = try await fixture.get("/raw").body.collect()
        #expect(body == Data("hello".utf8))
      }
      #expect(fixture.origin.counters.connectionsAccepted == 1)
    }
  }
}
#endif
