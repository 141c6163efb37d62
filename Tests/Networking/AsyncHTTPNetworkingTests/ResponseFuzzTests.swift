#if AsyncHTTP && Origin
@testable import AsyncHTTPNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

/// Damaged responses on a socket. `ETAGERE_FUZZ_SECONDS` and `ETAGERE_FUZZ_SEED` make a longer run: see `Scripts/fuzz`.
@Suite("Damaged responses", .timeLimit(.minutes(60)))
struct ResponseFuzzTests {
  private static let seeds: [[UInt8]] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n10;a=b\r\n0123456789abcdef\r\n0\r\nX-Sum: 1\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    "HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nX-A : 1\r\n 2\r\n\r\nuntil the end",
    "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1\r\n\r\na",
    "HTTP/1.1 302 Found\r\nLocation: /b\r\nConnection: close\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n",
  ]
  .map { Array($0.utf8) }

  private static let tokens: [[UInt8]] = [
    "\r\n", "\n", "\r", "\r\n ", "\r\n\t", "\t", " ", ":", ",", ";", "0", "9", "-1", "099", "000", "101", "100", "999", "1000",
    "HTTP/1.1 ", "HTTP/1.0 ", "HTTP/1.1 099 X\r\n\r\n", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "chunked",
    "gzip",
    "Connection: upgrade\r\nUpgrade: h2c\r\n", "Connection: close\r\n", "7fffffffffffffff", "ffffffffffffffff", "\u{0}", "\u{FF}",
    "9223372036854775807", "18446744073709551615", "\r\n\r\n", "0\r\n\r\n",
  ]
  .map { Array($0.utf8) }

  private static func damaged(_ random: inout SplitMix) -> [UInt8] {
    var bytes = seeds.randomElement(using: &random) ?? []
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let start = Int.random(in: 0...bytes.count, using: &random)
      let end = min(bytes.count, start + Int.random(in: 0...8, using: &random))
      switch Int.random(in: 0..<6, using: &random) {
      case 0: bytes.removeSubrange(start..<end)
      case 1: bytes.insert(contentsOf: bytes[start..<end], at: start)
      case 2: bytes.insert(contentsOf: tokens.randomElement(using: &random) ?? [], at: start)
      case 3: bytes.replaceSubrange(start..<end, with: tokens.randomElement(using: &random) ?? [])
      case 4: for index in start..<end { bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
      default: bytes = Array(bytes[..<start]) + (seeds.randomElement(using: &random) ?? []).suffix(end)
      }
    }
    return bytes
  }

  @Test("each damaged response is a response or an error, and the process lives")
  func wholeWay() async throws {
    let environment = ProcessInfo.processInfo.environment
    let seconds = environment["ETAGERE_FUZZ_SECONDS"].flatMap { Int64($0) }
    let seed = environment["ETAGERE_FUZZ_SEED"].flatMap { UInt64($0) } ?? 39
    let limit = seconds.map { ContinuousClock.now + .seconds($0) }
    var random = SplitMix(state: seed)
    try await Fixture.run { fixture in
      var count = 0
      while limit.map({ ContinuousClock.now < $0 }) ?? (count < 250) {
        count += 1
        let bytes = Self.damaged(&random)
        if limit != nil, let file = environment["ETAGERE_FUZZ_FILE"] { try Data(bytes).write(to: URL(filePath: file)) }
        fixture.origin.setRoute("/raw", .fault(.raw(Data(bytes))))
        let method = [HTTPRequest.Method.get, .get, .head, .post].randomElement(using: &random) ?? .get
        let body = method == .post ? ResourceBody(Data("body".utf8)) : nil
        let request = try fixture.request("/raw", method: method, body: body)
        guard let response = try? await fixture.downloader.download(request) else { continue }
        #expect((200...999).contains(response.head.status.code))
        _ = try? await response.body.collect()
      }
    }
  }

  @Test("bytes are repaired equally in one piece and one by one")
  func pieces() {
    var random = SplitMix(state: 39)
    for index in 0..<1_000 {
      let bytes = index < Self.seeds.count ? Self.seeds[index] : Self.damaged(&random)
      for isHead in [false, true] {
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(Self.repaired([bytes], isHead) == Self.repaired(bytes.map { [$0] }, isHead), "\(text.debugDescription)")
      }
    }
  }

  /// Returns the repaired bytes, or `nil` if they are refused.
  private static func repaired(_ pieces: [[UInt8]], _ isHead: Bool) -> [UInt8]? {
    var repair = ResponseRepair()
    repair.expectResponse(isHead: isHead)
    var output: [UInt8] = []
    do throws(CacheError) {
      for piece in pieces {
        if let bytes = try repair.repair(ByteBuffer(bytes: piece)) { output += bytes.readableBytesView }
      }
    } catch {
      return nil
    }
    if let rest = repair.takeHeld() { output += rest.readableBytesView }
    return output
  }

  @Test("a response that the parser accepts as it is has the same body after the repair")
  func sameBody() throws {
    var random = SplitMix(state: 41)
    let found: [[UInt8]] = ["HTTP/1.1 200\r\r\r\nA : b\r\n\r\n", "HTTP/1.1 200 OK\r\rContent-Length: 7\r\n\r\nhello"]
      .map { Array($0.utf8) }
    var compared = 0
    for index in 0..<1_500 {
      let bytes = index < found.count ? found[index] : Self.damaged(&random)
      for isHead in [false, true] {
        // The parser leaves bodies of other codings as they are.
        guard let plain = Self.parsed(bytes, isHead: isHead), plain.codings.isEmpty || plain.codings == ["chunked"],
          let repaired = Self.repaired([bytes], isHead)
        else { continue }
        compared += 1
        let body = Self.parsed(repaired, isHead: isHead)?.body
        #expect(body == plain.body, "\(String(decoding: bytes, as: UTF8.self).debugDescription), HEAD: \(isHead)")
      }
    }
    #expect(compared > 100)
  }

  /// Returns the codings and the body that SwiftNIO's parser reads, or `nil` if it refuses the response.
  private static func parsed(_ bytes: [UInt8], isHead: Bool) -> (codings: [String], body: [UInt8])? {
    let channel = EmbeddedChannel()
    let pipeline = channel.pipeline.syncOperations
    do {
      try pipeline.addHTTPClientHandlers(leftOverBytesStrategy: .forwardBytes)
      try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
      let head = HTTPRequestHead(version: .http1_1, method: isHead ? .HEAD : .GET, uri: "/")
      try channel.writeOutbound(HTTPClientRequestPart.head(head))
      try channel.writeOutbound(HTTPClientRequestPart.end(nil))
      try channel.writeInbound(ByteBuffer(bytes: bytes))
      try channel.close().wait()
      try channel.throwIfErrorCaught()
    } catch {
      // Bytes after a complete response are an error too.
    }
    var result: (codings: [String], body: [UInt8])?
    while let part = try? channel.readInbound(as: HTTPClientResponsePart.self) {
      switch part {
      // Such a status is refused after the parser.
      case .head(let head) where head.status.code < 100: return nil
      case .head(let head): result = (head.headers["Transfer-Encoding"].map { $0.lowercased() }, [])
      case .body(let bytes): result?.body += bytes.readableBytesView
      case .end: return result
      }
    }
    return nil
  }

  @Test("a line of many pieces is held up to the parser's limit")
  func slowLine() throws {
    var repair = ResponseRepair()
    repair.expectResponse(isHead: false)
    #expect(try repair.repair(ByteBuffer(string: "HTTP/1.1 200 OK\r\n")) != nil)
    let piece = ByteBuffer(string: "X-A: " + String(repeating: "a", count: 1019))
    for _ in 0..<80 { #expect(try repair.repair(piece) == nil) }
    #expect(throws: CacheError.self) { _ = try repair.repair(piece) }
  }

  @Test("well-formed responses are not changed")
  func unchanged() {
    let short = Array("HTTP/1.1 200 OK\r\nContent-Length:5\r\n\r\nhello".utf8)
    for bytes in Self.seeds + [short] {
      let text = String(decoding: bytes, as: UTF8.self)
      guard !text.contains(" :"), !text.contains(";") else { continue }
      #expect(Self.repaired([bytes], false) == bytes)
    }
  }
}
#endif
