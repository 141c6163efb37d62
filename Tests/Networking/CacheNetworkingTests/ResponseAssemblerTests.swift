import CacheCore
import Foundation
import HTTPTypes
import Testing

@testable import CacheNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Response assembly") struct ReceptionTests {
  private func response(_ status: Int, _ fields: [String: String] = [:]) throws -> HTTPURLResponse {
    let url = try #require(URL(string: "http://origin/a"))
    return try #require(HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
  }

  /// Returns a short description of the events.
  private func told(_ events: [SessionDataTask.Event]) -> [String] {
    events.map { event in
      switch event {
      case .head(let head): "head \(head.status.code)"
      case .data(let data): "data \(data.count)"
      case .end(let error): "end \(error?.code.rawValue ?? "")"
      }
    }
  }

  private func reception(_ method: HTTPRequest.Method = .get) -> ResponseAssembler {
    ResponseAssembler(method: method, startedAt: .seconds(1))
  }

  @Test("a short body that the platform reports as complete is an error")
  func short() throws {
    var reception = reception()
    _ = try reception.receive(response(200, ["Content-Length": "10"]), at: .seconds(3), holdsUnauthorized: false)
    #expect(try told(reception.receive(Data(count: 4))) == ["data 4"])

    let events = reception.end(nil, response: nil, at: .seconds(4))

    #expect(told(events) == ["end truncatedBody"])
    #expect(reception.metrics == TransferMetrics(timeToHead: .seconds(2), bytesOnWire: 4, bytesDecoded: 4))
  }

  @Test("a body that is longer than announced is an error, also of a response that is held back", arguments: [false, true])
  func long(isHeld: Bool) throws {
    var reception = reception()
    let head = try response(401, ["Content-Length": "10"])
    _ = try reception.receive(head, at: .seconds(3), holdsUnauthorized: isHeld)
    let isCounted = reception.count(Data(count: 10))
    #expect(isCounted == !isHeld)
    if isHeld { #expect(try reception.receive(Data(count: 10)).isEmpty) }
    let isCountedBeyond = reception.count(Data(count: 1))
    #expect(!isCountedBeyond)

    let error = #expect(throws: CacheError.self) { try reception.receive(Data(count: 1)) }

    #expect(error?.code == .malformedResponse)
    #expect(error?.reason.contains("10 bytes") == true)
  }

  @Test("a transfer coding overrides the length, also an invalid one", arguments: ["10", "4", "ten"])
  func bothFramings(length: String) throws {
    let fields = ["Content-Length": length, "Transfer-Encoding": "chunked"]
    let head = try #require(ReceivedHead(response(200, fields), method: .get))
    #expect(head.bodyLength == nil)
    #expect(head.encodedLength == nil)
    #expect(head.response.headerFields[.contentLength] == nil)
  }

  @Test("a content coding that stands for none does not count", arguments: ["identity", "none", "Identity, NONE"])
  func noCoding(name: String) throws {
    let alone = try #require(ReceivedHead(response(200, ["Content-Encoding": name, "Content-Length": "3"]), method: .get))
    #expect(alone.bodyLength == 3)
    #expect(alone.response.headerFields[.contentEncoding] == name)
    let fields = ["Content-Encoding": "\(name), gzip", "Content-Length": "3"]
    let decoded = try #require(ReceivedHead(response(200, fields), method: .get))
    #expect(decoded.bodyLength == nil)
    #expect(decoded.encodedLength == 3)
    #expect(decoded.response.headerFields[.contentEncoding] == nil)
  }

  @Test(
    "a body whose coding is unknown to the platform keeps its field, and its length only if the platform will never decode it",
    arguments: [
      (PlatformDecoding.linux, "zstd", nil, nil), (.linux, "lzma", "lzma", 3), (.linux, "gzip, zstd", nil, nil),
      (.apple, "lzma", "lzma", nil), (.apple, "zstd, gzip", "zstd, gzip", nil), (.apple, "br", nil, nil),
    ] as [(PlatformDecoding, String, String?, Int64?)])
  func platforms(decoding: PlatformDecoding, coding: String, field: String?, length: Int64?) throws {
    let platform = try response(200, ["Content-Encoding": coding, "Content-Length": "3"])
    let head = try #require(ReceivedHead(platform, method: .get, decoding: decoding))
    #expect(head.response.headerFields[.contentEncoding] == field)
    #expect(head.bodyLength == length)
    #expect(head.encodedLength == (field == nil ? 3 : nil))
    #expect(!head.needsStart)
  }

  private static let zstandard: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0]
  private static let skippable: [UInt8] = [0x5E, 0x2A, 0x4D, 0x18, 0]

  @Test(
    "on Apple platforms, the start of a zstd body decides whether it keeps its field, in any chunks",
    arguments: [
      ("zstd", zstandard, true), ("zstd", skippable, true), ("gzip, zstd", zstandard, true),
      ("ZSTD", Array("{\"a\":1}".utf8), false), ("gzip, zstd", Array("text".utf8), false), ("zstd", Array("{}".utf8), false),
      ("zstd", [], false),
      ("zstd", Array(zstandard.prefix(3)), false), ("zstd", [0x4E, 0x2A, 0x4D, 0x18], false),
    ] as [(String, [UInt8], Bool)], [1, 3, 100])
  func startOfBody(_ body: (coding: String, bytes: [UInt8], isEncoded: Bool), chunk: Int) throws {
    // Given
    var reception = ResponseAssembler(method: .get, startedAt: .zero, decoding: .apple)
    let head = try response(200, ["Content-Encoding": body.coding, "Content-Length": "99"])
    var events = try reception.receive(head, at: .zero, holdsUnauthorized: false)
    #expect(events.isEmpty)
    #expect(!reception.isHolding)

    // When
    for start in stride(from: 0, to: body.bytes.count, by: chunk) {
      let data = Data(body.bytes[start..<min(start + chunk, body.bytes.count)])
      if reception.count(data) { events.append(.data(data)) } else { events += try reception.receive(data) }
    }
    events += reception.releaseAtEnd(nil) + reception.end(nil, response: nil, at: .zero)

    // Then
    guard case .head(let received) = events.first else {
      Issue.record("the first event is no head")
      return
    }
    #expect(received.headerFields[.contentEncoding] == (body.isEncoded ? body.coding : nil))
    #expect(received.headerFields[.contentLength] == (body.isEncoded ? "99" : nil))
    let bytes = events.flatMap { event -> [UInt8] in if case .data(let data) = event { Array(data) } else { [] } }
    #expect(bytes == body.bytes)
    #expect(told(events).last == "end ")
    #expect(reception.metrics.bytesOnWire == (body.isEncoded ? Int64(bytes.count) : 99))
  }

  @Test("a part of a zstd body keeps its field, whatever its first bytes are")
  func partOfBody() throws {
    let platform = try response(206, ["Content-Encoding": "zstd", "Content-Range": "bytes 100-199/500", "Content-Length": "100"])
    let head = try #require(ReceivedHead(platform, method: .get, decoding: .apple))
    #expect(!head.needsStart && head.bodyLength == nil)
    #expect(head.response.headerFields[.contentEncoding] == "zstd")
  }

  @Test("a zstd body that is cut off before a decision keeps its field", arguments: [0, 3])
  func cutStart(count: Int) throws {
    var reception = ResponseAssembler(method: .get, startedAt: .zero, decoding: .apple)
    _ = try reception.receive(response(200, ["Content-Encoding": "zstd"]), at: .zero, holdsUnauthorized: false)
    _ = try reception.receive(Data(Self.zstandard.prefix(count)))
    guard case .head(let received) = reception.releaseAtEnd(URLError(.networkConnectionLost)).first else {
      Issue.record("the first event is no head")
      return
    }
    #expect(received.headerFields[.contentEncoding] == "zstd")
  }

  @Test("a response without a body keeps its zstd field", arguments: [(200, HTTPRequest.Method.head), (304, .get)])
  func codingWithoutBody(status: Int, method: HTTPRequest.Method) throws {
    let head = try #require(ReceivedHead(response(status, ["Content-Encoding": "zstd"]), method: method, decoding: .apple))
    #expect(!head.needsStart)
    #expect(head.response.headerFields[.contentEncoding] == "zstd")
  }

  @Test(
    "a length that does not count the delivered bytes is not compared",
    arguments: [
      (200, ["Content-Length": "10", "Content-Encoding": "gzip"], HTTPRequest.Method.get),
      (200, ["Content-Length": "10", "Content-Encoding": "gzip, br"], .get), (200, ["Content-Length": "10"], .head),
      (304, ["Content-Length": "10"], .get), (204, ["Content-Length": "10"], .get), (200, [:], .get),
    ] as [(Int, [String: String], HTTPRequest.Method)])
  func notCompared(status: Int, fields: [String: String], method: HTTPRequest.Method) throws {
    var reception = reception(method)
    _ = try reception.receive(response(status, fields), at: .seconds(2), holdsUnauthorized: false)

    #expect(told(reception.end(nil, response: nil, at: .seconds(4))) == ["end "])
  }

  @Test(
    "an invalid length and two different lengths are errors",
    arguments: ["5, 10", "-10", "+10", "ten", "", "99999999999999999999"])
  func impossibleLength(text: String) {
    var reception = reception()
    let error = #expect(throws: CacheError.self) {
      try reception.receive(response(200, ["Content-Length": text]), at: .seconds(2), holdsUnauthorized: false)
    }
    #expect(error?.code == .malformedResponse)
  }

  @Test("repeated equal lengths are one length")
  func repeatedLength() throws {
    var reception = reception()
    _ = try reception.receive(response(200, ["Content-Length": "10, 10"]), at: .seconds(2), holdsUnauthorized: false)

    #expect(reception.bodyLength == 10)
    #expect(told(reception.end(nil, response: nil, at: .seconds(4))) == ["end truncatedBody"])
  }

  @Test("a coding that the platform does not remove stays in the head")
  func unknownCoding() throws {
    let head = try #require(ReceivedHead(response(200, ["Content-Encoding": "aes128gcm", "Content-Length": "3"]), method: .get))

    #expect(head.response.headerFields[.contentEncoding] == "aes128gcm")
    #expect(head.response.headerFields[.contentLength] == "3")
    #expect(head.bodyLength == 3)
  }

  @Test("a field name that is not a token is dropped")
  func names() throws {
    let head = try #require(ReceivedHead(response(200, ["X Y": "1", "X-Z": "2", "Etag": "\"v\""]), method: .get))

    #expect(Set(head.response.headerFields.map(\.name.rawName)) == ["X-Z", "Etag"])
    #expect(head.response.headerFields[.eTag] == "\"v\"")
  }

  @Test("the response to the credential supersedes a held 401 with its body")
  func superseded() throws {
    var reception = reception()
    #expect(try told(reception.receive(response(401), at: .seconds(2), holdsUnauthorized: true)).isEmpty)
    #expect(try told(reception.receive(Data(count: 6))).isEmpty)
    #expect(reception.isHolding)

    #expect(try told(reception.receive(response(200), at: .seconds(3), holdsUnauthorized: true)) == ["head 200"])
    #expect(try told(reception.receive(Data(count: 5))) == ["data 5"])
    #expect(told(reception.end(nil, response: nil, at: .seconds(4))) == ["end "])
    #expect(reception.metrics.bytesOnWire == 5)
  }

  @Test("a held 401 that is not superseded is the response, and a very long one is passed on")
  func released() throws {
    var short = reception()
    _ = try short.receive(response(401), at: .seconds(2), holdsUnauthorized: true)
    _ = try short.receive(Data(count: 6))
    #expect(told(short.release()) == ["head 401", "data 6"])
    #expect(told(short.release()).isEmpty)

    var long = reception()
    _ = try long.receive(response(401), at: .seconds(2), holdsUnauthorized: true)
    _ = try long.receive(Data(count: ResponseAssembler.heldLimit))
    #expect(try told(long.receive(Data(count: 1))) == ["head 401", "data \(ResponseAssembler.heldLimit)", "data 1"])
    #expect(!long.isHolding)
  }

  @Test("an end without a head is an error, but a head without a callback is a response")
  func late() throws {
    var nothing = reception()
    #expect(told(nothing.end(nil, response: nil, at: .seconds(4))) == ["end malformedResponse"])

    var late = reception()
    #expect(try told(late.end(nil, response: response(302, ["Content-Length": "7"]), at: .seconds(4))) == ["head 302", "end "])
  }

  @Test("interim responses are not reported, nor are bytes before the head")
  func interim() throws {
    var reception = reception()
    #expect(try told(reception.receive(response(103), at: .seconds(2), holdsUnauthorized: false)).isEmpty)
    #expect(try told(reception.receive(Data(count: 5))).isEmpty)
    #expect(try told(reception.receive(response(200), at: .seconds(2), holdsUnauthorized: false)) == ["head 200"])
  }

  @Test("the total is reported after the last byte")
  func total() throws {
    var reception = reception()
    _ = try reception.receive(response(200, ["Content-Length": "3"]), at: .seconds(2), holdsUnauthorized: false)
    _ = try reception.receive(Data(count: 3))
    #expect(reception.metrics.total == nil)

    _ = reception.end(nil, response: nil, at: .seconds(4))

    #expect(reception.metrics.total == .seconds(3))
  }

  @Test("the platform's measurements complete our own")
  func platformTimes() throws {
    var reception = reception()
    _ = try reception.receive(response(200), at: .seconds(2), holdsUnauthorized: false)
    reception.times = TaskTimes(protocolName: "h2", isReusedConnection: true)
    #expect(reception.metrics.protocolName == "h2")
    #expect(reception.metrics.timeToHead == .seconds(1))
  }
}

@Suite("Responses through a proxy") struct ProxiedReceptionTests {
  private let proxy = ProxySettings.Proxy(host: "proxy", port: 8080)

  private func response(_ status: Int, _ fields: [String: String] = [:]) throws -> HTTPURLResponse {
    let url = try #require(URL(string: "https://origin/a"))
    return try #require(HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
  }

  private func tunnel() -> ResponseAssembler {
    ResponseAssembler(method: .get, startedAt: .seconds(1), proxy: proxy, tunnel: true)
  }

  private func head(_ events: [SessionDataTask.Event]) -> HTTPResponse? {
    for case .head(let head) in events { return head }
    return nil
  }

  private func end(_ events: [SessionDataTask.Event]) -> CacheError? {
    guard case .end(let error)? = events.last else { return nil }
    return error
  }

  @Test("the proxy's success response to CONNECT is not the server's head")
  func established() throws {
    var reception = tunnel()
    let first = try reception.receive(response(200, ["X-Proxy": "1"]), at: .seconds(2), holdsUnauthorized: false)
    let second = try reception.receive(response(404, ["Content-Length": "3"]), at: .seconds(3), holdsUnauthorized: false)
    #expect(first.isEmpty)
    #expect(second.isEmpty)
    #expect(!reception.isHolding, "no credential is expected")

    let events = try reception.receive(Data(count: 3))

    #expect(head(events)?.status == .notFound)
    #expect(events.count == 2)
    #expect(end(reception.end(nil, response: nil, at: .seconds(4))) == nil)
    #expect(reception.metrics.timeToHead == .seconds(2))
  }

  @Test("a response without a body through a tunnel is reported at its end")
  func withoutBody() throws {
    var reception = tunnel()
    _ = try reception.receive(response(200), at: .seconds(2), holdsUnauthorized: false)
    _ = try reception.receive(response(304), at: .seconds(3), holdsUnauthorized: false)

    #expect(head(reception.releaseAtEnd(nil))?.status == .notModified)
    #expect(end(reception.end(nil, response: nil, at: .seconds(4))) == nil)
  }

  @Test("a proxy that opens no tunnel is a proxy failure and not a response with its status")
  func refused() throws {
    var reception = tunnel()
    _ = try reception.receive(response(502), at: .seconds(2), holdsUnauthorized: false)
    let text = "CONNECT tunnel failed, response 502"
    let error = URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: text])

    #expect(reception.releaseAtEnd(error).isEmpty)
    #expect(end(reception.end(error, response: nil, at: .seconds(3)))?.code == .proxyFailure)
    #expect(reception.metrics.timeToHead == nil)
  }

  @Test("a failed handshake in the tunnel is a TLS failure and not a truncated body")
  func handshake() throws {
    var reception = tunnel()
    _ = try reception.receive(response(200), at: .seconds(2), holdsUnauthorized: false)
    let error = URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: "SSL certificate problem: self-signed certificate"])

    #expect(reception.releaseAtEnd(error).isEmpty)
    #expect(end(reception.end(error, response: nil, at: .seconds(3)))?.code == .tlsFailure)
  }

  @Test("a failure to connect is reported as the proxy's", arguments: [URLError.Code.cannotConnectToHost, .cannotFindHost])
  func unreachable(code: URLError.Code) {
    var reception = ResponseAssembler(method: .get, startedAt: .zero, proxy: proxy)
    let error = end(reception.end(URLError(code), response: nil, at: .seconds(1)))
    #expect(error?.code == .proxyFailure)
    #expect(error?.reason.contains("http://proxy:8080") == true)
    #expect(error?.underlying != nil)
  }

  @Test("a 407 is a proxy failure and not a response")
  func credential() throws {
    var reception = ResponseAssembler(method: .get, startedAt: .zero, proxy: proxy)
    let refused = try response(407)
    let error = #expect(throws: CacheError.self) {
      try reception.receive(refused, at: .seconds(1), holdsUnauthorized: false)
    }
    #expect(error?.code == .proxyFailure)
    #expect(error?.status == 407)

    var direct = ResponseAssembler(method: .get, startedAt: .zero)
    #expect(
      head(try direct.receive(refused, at: .seconds(1), holdsUnauthorized: false)) != nil,
      "without a proxy, every status is a response")
  }
}
