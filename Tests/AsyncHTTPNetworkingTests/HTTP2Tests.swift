#if AsyncHTTP
import AsyncHTTPNetworking
import CacheCore
import Foundation
import HTTPTypes
import Testing

@Suite("Responses over HTTP/2 that are not quite HTTP", .timeLimit(.minutes(30)))
struct HTTP2Tests {
  private func result(of frames: [HTTP2Server.Frame]) async throws -> Result<(HTTPResponse, String), CacheError> {
    let server = try await HTTP2Server.start(frames)
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
