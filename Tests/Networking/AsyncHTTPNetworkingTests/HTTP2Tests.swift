#if AsyncHTTP
import AsyncHTTPNetworking
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Responses over HTTP/2 that are not quite HTTP", .timeLimit(.minutes(30)))
struct HTTP2Tests {
  private func result(
    of frames: [HTTP2Server.Frame], closes: Bool = false
  ) async throws -> Result<(HTTPResponse, String), CacheError> {
    let server = try await HTTP2Server.start(frames, closes: closes)
    let downloader = try AsyncHTTPDownloader(
      configuration: .init {
        $0.tls.trustedHosts = ["localhost"]
        ($0.idleTimeout, $0.connectTimeout) = (.seconds(3_600), .seconds(3_600))
      })
    let request = DownloadRequest(head: try HTTPRequest(resource: server.url))
    let result: Result<(HTTPResponse, String), CacheError>
    do throws(CacheError) {
      let response = try await downloader.download(request)
      #expect(response.metrics().protocolName == "h2")
      result = .success((response.head, String(decoding: try await response.body.collect(), as: UTF8.self)))
    } catch {
      result = .failure(error)
    }
    await downloader.close()
    try await server.stop()
    return result
  }

  @Test("a status of three digits is a response, after interim ones", arguments: ["200", "404", "999"])
  func status(text: String) async throws {
    let (head, body) = try await result(of: [
      .headers([(":status", "100")]), .headers([(":status", "103"), ("link", "<a>")]), .headers([(":status", text), ("x", "y")]),
      .data("hello", endsStream: true),
    ]).get()
    #expect(head.status.code == Int(text))
    #expect(body == "hello")
  }

  @Test("interim responses are reported with their fields")
  func interim() async throws {
    let server = try await HTTP2Server.start([
      .headers([(":status", "102")]), .headers([(":status", "103"), ("link", "<a>")]), .headers([(":status", "200")]),
      .data("hello", endsStream: true),
    ])
    let downloader = try Fixture.downloader(.init { $0.tls.trustedHosts = ["localhost"] })
    let reported = Lock<[HTTPResponse]>([])
    var request = DownloadRequest(head: try HTTPRequest(resource: server.url))
    request.onInterimResponse = { head in reported.withLock { $0.append(head) } }
    let response = try await downloader.download(request)
    #expect(response.metrics().protocolName == "h2")
    #expect(try await response.body.collect() == Data("hello".utf8))
    await downloader.close()
    // Over a connection of its own, an equal request without a receiver is sent as the same bytes.
    let other = try Fixture.downloader(.init { $0.tls.trustedHosts = ["localhost"] })
    _ = try await other.download(DownloadRequest(head: request.head)).body.collect()
    await other.close()
    try await server.stop()
    #expect(server.headerBlocks.count == 2 && server.headerBlocks[0] == server.headerBlocks[1])
    let interim = reported.withLock { $0 }
    #expect(interim.map(\.status.code) == [102, 103])
    #expect(interim.map { $0.headerFields.map { "\($0.name): \($0.value)" } } == [[], ["link: <a>"]])
  }

  @Test(
    "any other status is an error",
    arguments: [
      "099", "000", "001", "99", "0", "1000", "9999", "19999999999999999999", "-1", "-99", "", " ", "+20", "20x", "2 0", "0x1",
      "101",
    ])
  func invalidStatus(text: String) async throws {
    let head = HTTP2Server.Frame.headers([(":status", text)])
    for frames in [
      [head, .data("hello", endsStream: true)], [.headers([(":status", text)], endsStream: true)],
      [.headers([(":status", "103")]), head, .data("hello", endsStream: true)],
      [head, .headers([(":status", "200")]), .data("hello", endsStream: true)],
    ] {
      switch try await result(of: frames) {
      case .success((let head, _)): Issue.record("\(head.status)")
      case .failure(let error): #expect([.malformedResponse, .connectionLost].contains(error.code), "\(error)")
      }
    }
  }

  @Test("a head without a status, with two, or without a final head is an error")
  func noStatus() async throws {
    for frames: [HTTP2Server.Frame] in [
      [.headers([("x", "y")], endsStream: true)], [.headers([(":status", "200"), (":status", "099")], endsStream: true)],
      [.headers([(":status", "100")], endsStream: true)], [.data("hello", endsStream: true)],
      [.headers([(":status", "100")]), .data("hello", endsStream: true)],
    ] {
      if case .success((let head, _)) = try await result(of: frames) { Issue.record("\(head.status)") }
    }
  }

  @Test("frames in any order and with any fields are a response or an error, and the process lives")
  func anyFrames() async throws {
    let fields = [
      ("content-length", "5"), ("content-length", "-1"), ("content-length", "x"), ("content-length", "9223372036854775807"),
      ("transfer-encoding", "gzip"), ("connection", "close"), ("X-Upper", "1"), ("", "1"), ("x", "a\r\nb"), (":path", "/"),
      (":status", "200"), ("x", "\u{0}"), ("set-cookie", "a"),
    ]
    let statuses = ["200", "204", "304", "100", "103", "101", "099", "1000", "-1", ""]
    let payloads: [[UInt8]] = [
      [], [0, 0, 0, 0], [0, 0, 0, 8], [0x7F, 0xFF, 0xFF, 0xFF], [0xFF, 0xFF, 0xFF, 0xFF], [0, 3, 0, 0, 0, 0],
      [0, 3, 0xFF, 0xFF, 0xFF, 0xFF],
      [0, 4, 0xFF, 0xFF, 0xFF, 0xFF], [0, 5, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 2],
      [0x88], [0x80], [0, 0, 0, 2, 0x88], [0xFF, 0x88],
    ]
    let count = ProcessInfo.processInfo.environment["ETAGERE_FUZZ_FRAMES"].flatMap { Int($0) } ?? 60
    var random = SplitMix(state: 39)
    for _ in 0..<count {
      let frames = (0..<Int.random(in: 1...5, using: &random)).map { _ -> HTTP2Server.Frame in
        let endsStream = Int.random(in: 0..<3, using: &random) == 0
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .data("hello", endsStream: endsStream)
        case 1, 2:
          return .any(
            payloads.randomElement(using: &random) ?? [], type: UInt8.random(in: 0...13, using: &random),
            flags: [0, 1, 4, 5, 8, 0x20, 0xFF].randomElement(using: &random) ?? 0, isOfStream: Bool.random(using: &random))
        default:
          var block = [(":status", statuses.randomElement(using: &random) ?? "")]
          if Int.random(in: 0..<8, using: &random) == 0 { block = [] }
          for _ in 0..<Int.random(in: 0...2, using: &random) { block.append(fields.randomElement(using: &random) ?? ("x", "")) }
          return .headers(block, endsStream: endsStream)
        }
      }
      if case .success((let head, _)) = try await result(of: frames, closes: true) {
        #expect((200...999).contains(head.status.code))
      }
    }
  }

  @Test("header blocks after the final head are trailers, and nothing after them ends the process")
  func trailers() async throws {
    for frames: [HTTP2Server.Frame] in [
      [.headers([(":status", "200")]), .data("hello"), .headers([("x", "y")], endsStream: true)],
      [.headers([(":status", "200")]), .headers([(":status", "099")], endsStream: true)],
      [.headers([(":status", "200")]), .headers([("x", "y")]), .headers([("x", "y")], endsStream: true)],
      [.headers([(":status", "200")], endsStream: true), .headers([("x", "y")], endsStream: true), .data("x")],
    ] {
      _ = try await result(of: frames)
    }
  }
}
#endif
