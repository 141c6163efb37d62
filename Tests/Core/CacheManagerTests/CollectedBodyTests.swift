import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

/// A downloader that records how large a body each request permits it to collect.
private final class PermissionRecorder: Downloader {
  let id = ComponentID.unique(PermissionRecorder.self)
  private let base = Lock<(any Downloader)?>(nil)
  private let permitted = Lock<[Int]>([])

  var limits: [Int] { permitted.withLock { $0 } }

  func wrap(_ downloader: any Downloader) { base.withLock { $0 = downloader } }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    permitted.withLock { $0.append(request.collectUpTo) }
    guard let base = base.withLock({ $0 }) else { throw CacheError(.noDownloader, reason: "the recorder has no base") }
    return try await base.download(request)
  }
}

@Suite("Bodies that arrive with their heads")
struct CollectedBodyTests {
  @Test("only a load into memory permits its downloader to collect the body, up to its own limit")
  func permission() async throws {
    let recorder = PermissionRecorder()
    let fixture = try ManagerFixture { $0.downloader = recorder }
    recorder.wrap(fixture.network)
    fixture.network.serve(fixture.url) { _ in .ok("bytes", cacheControl: "no-store") }
    let folder = try DownloadFolder()

    _ = try await fixture.manager.load(fixture.url)
    _ = try await fixture.manager.load(fixture.url, options: RequestOptions { $0.maximumBodySize = 100 })
    _ = try await fixture.manager.load(fixture.url, to: folder.file("file"))
    _ = try await fixture.send()
    _ = await fixture.manager.prefetch([fixture.url], into: .disk)

    #expect(recorder.limits == [65_536, 100, 0, 0, 0])
  }

  @Test("a body in one piece causes one progress report, before the value")
  func progress() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes"), .ok(""))
    for expected in [["5 of 5", "bytes"], [""]] {
      var events: [String] = []
      for try await event in fixture.manager.events(for: fixture.url, options: .policy(.reload)) {
        switch event {
        case .progress(let progress): events.append("\(progress.received) of \(progress.expected ?? -1)")
        case .final(let resource): events.append(resource.text)
        case .stale: events.append("stale")
        }
      }
      #expect(events == expected)
    }
  }

  @Test("a body in one piece that exceeds the limit of the load is refused, and reserves no memory")
  func tooLarge() async throws {
    let network = ClosureDownloader { _ throws(CacheError) in
      DownloadResponse(head: HTTPResponse(status: .ok), body: ResourceBody(Data(count: 11)))
    }
    let fixture = try ManagerFixture { $0.downloader = network }
    let error = try await fixture.failure(fixture.url, RequestOptions { $0.maximumBodySize = 10 })
    #expect(error.code == .bodyTooLarge)
    #expect(fixture.manager.memoryUse.peak == 0 && fixture.disk.keys.isEmpty)
    #expect(try await fixture.manager.load(fixture.url, options: RequestOptions { $0.maximumBodySize = 11 }).data.count == 11)
  }

  @Test("a body in one piece is reserved as a whole, and stored in memory and on disk")
  func stored() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 20_000), cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    #expect(fixture.manager.memoryUse.peak == 20_000)
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
    fixture.restart()
    let stored = try await fixture.manager.load(fixture.url)
    #expect(stored.source == .disk && stored.data.count == 20_000)
  }

  @Test("a collected response counts from the arrival of its head, so it does not replace one that was sent after it")
  func order() async throws {
    let gate = Gate()
    let isFirst = Lock(true)
    let network = ClosureDownloader { _ throws(CacheError) in
      let isOlder = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      if isOlder { await gate.pass() }
      let head = HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=600"])
      let metrics = TransferMetrics(timeToHead: .seconds(1), total: .seconds(isOlder ? 10 : 1))
      return DownloadResponse(head: head, body: ResourceBody(Data((isOlder ? "old" : "new").utf8)), metrics: { metrics })
    }
    let fixture = try ManagerFixture { $0.downloader = network }
    let older = Task { try await fixture.manager.load(fixture.url).text }
    await gate.arrived()
    fixture.clock.advance(by: .seconds(5))
    #expect(try await fixture.manager.load(fixture.url, options: .policy(.reload)).text == "new")
    fixture.clock.advance(by: .seconds(5))
    gate.open()

    #expect(try await older.value == "old")
    #expect(try await fixture.manager.load(fixture.url, options: .policy(.cacheOnly)).text == "new")
    fixture.restart()
    #expect(try await fixture.manager.load(fixture.url, options: .policy(.cacheOnly)).text == "new")
  }
}
