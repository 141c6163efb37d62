import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheTransport

@Suite("Hosts of concurrency limits")
struct TransferHostTests {
  @Test(
    "different notations of a host have one name",
    arguments: [
      ("http", "a.example", "a.example:80"), ("http", "A.Example", "a.example:80"), ("HTTP", "a.example:80", "a.example:80"),
      ("http", "a.example:", "a.example:80"), ("https", "a.example", "a.example:443"),
      ("https", "a.example:0443", "a.example:443"),
      ("http", "a.example:443", "a.example:443"), ("http", "user@a.example", "a.example:80"), ("http", "[::1]", "::1:80"),
      ("http", "[::1]:80", "::1:80"), ("http", "[::1]:", "::1:80"), ("file", "a", "a"), ("http", "a:b", "a:b"),
      ("http", "", ":80"), ("http", "BÜCHER.example", "xn--bcher-kva.example:80"),
      ("https", "b%C3%BCcher.example:443", "xn--bcher-kva.example:443"), ("http", "ü..a", "ü..a:80"),
    ])
  func name(_ scheme: String, _ authority: String, _ name: String) {
    let request = HTTPRequest(method: .get, scheme: scheme, authority: authority, path: "/")
    #expect(TransferHost.name(of: request) == name)
  }

  @Test("a host is counted with its port, explicit or implied, regardless of case")
  func limit() async throws {
    let gate = Gate()
    let spellings = ["http://a.example/", "http://a.example:80/", "http://A.example/"]
    let engine = HandlerDownloader { request throws(CacheError) in
      await gate.pass()
      return DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(Data()))
    }
    let downloader = LimitedDownloader(engine, limits: TransferLimits(perHost: 1))
    let loads = try spellings.map { spelling in
      let request = try TestRequest.request(spelling)
      return Task { try await downloader.download(request).body.collect() }
    }
    try await Polling.until { downloader.activeTransfers + downloader.waitingTransfers == 3 }
    #expect(downloader.activeTransfers == 1)
    gate.open()
    for load in loads { _ = try await load.value }
  }
}
