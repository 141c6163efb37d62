#if !canImport(Darwin)
import CacheCore
import CacheTesting
import Etagere
import Foundation
import HTTPTypes
import Testing

#if Origin
import LoopbackOrigin
#endif

@Suite("The default downloader on Linux")
struct WarningSessionDownloaderTests {
  @Test("its first request writes one line, and no request is changed")
  func once() async throws {
    let network = ScriptedDownloader()
    let url = try #require(URL(string: "https://example.com/a"))
    network.respond(to: url, with: .ok("a"), .ok("b"))
    let lines = Lock<[String]>([])
    let downloader = WarningSessionDownloader(network) { line in lines.withLock { $0.append(line) } }
    #expect(lines.withLock { $0 }.isEmpty)
    let request = DownloadRequest(head: try HTTPRequest(resource: url))
    for body in ["a", "b"] { #expect(try await downloader.download(request).body.collect() == Data(body.utf8)) }
    let written = lines.withLock { $0 }
    #expect(written.count == 1)
    #expect(written.first?.contains("AsyncHTTPDownloader") == true)
    #expect(downloader.id == network.id)
  }

  #if Origin
  @Test("a manager without a downloader of its own says once what it loads with")
  func standard() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      let origin = try await OriginServer.start()
      origin.setRoute("/a", Route(Data("a".utf8)))
      let manager = ResourceManager(try .standard(folder: nil))
      for _ in 0..<2 { _ = try await manager.load(origin.url("/a")) }
      let count = origin.requests.count
      await origin.stop()
      guard count == 2 else { throw CacheError(.other, reason: "\(count) requests arrived") }
    }
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(text.components(separatedBy: "loads with URLSession").count == 2)
  }
  #endif
}
#endif
