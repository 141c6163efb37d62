#if Origin
import CacheCore
@testable import CacheNetworking
import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Replacement of settings at run time", .timeLimit(.minutes(30))) struct SessionReplacementTests {
  /// A value whose release runs code.
  private final class Releasing: Sendable {
    private let onRelease: @Sendable () -> Void

    init(_ onRelease: @escaping @Sendable () -> Void) { self.onRelease = onRelease }

    deinit { onRelease() }
  }

  @Test("a replaced value is released outside the lock, so its release may read and replace the setting")
  func released() {
    let setting = ReplaceableSetting<Releasing?>(nil)
    let releases = Recorder<Bool>()
    setting.value = Releasing { [weak setting] in
      releases.record(setting?.value == nil)
      setting?.value = nil
    }
    #expect(releases.values.isEmpty)
    setting.value = nil
    #expect(releases.values == [true])
  }

  @Test("running transfers end in the old session, and new ones use the new session")
  func replaced() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.userAgent = "Old/1"
    try await Fixture.run(configuration) { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(60_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 1000)))
      let running = try await fixture.get("/a")

      configuration.userAgent = "New/1"
      fixture.downloader.configuration = configuration
      let second = try await fixture.get("/a")
      #expect(fixture.sessionEnds.values.isEmpty, "the old session's transfer still runs")
      gate.open()

      #expect(try await running.body.collect() == pattern(60_000))
      #expect(try await second.body.collect() == pattern(60_000))
      #expect(fixture.origin.requests(for: "/a").map { $0.fields[.userAgent] } == ["Old/1", "New/1"])
      #expect(await fixture.sessionEnds.wait(for: 1) == [true])
      #expect(await fixture.transferEnds.wait(for: 2).map(\.error) == [nil, nil])
      #expect(fixture.downloader.configuration == configuration)
    }
  }

  @Test("a cancellation reaches the transfers of the old session")
  func alone() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(60_000), delivery: .gated(by: gate)))
      let request = try fixture.request("/a")
      let running = Task { await fixture.failure(of: request) }
      await gate.arrived()

      fixture.downloader.configuration.userAgent = "New/1"

      #expect(fixture.downloader.cancelAll() == 1)
      #expect(await running.value?.isCancellation == true)
    }
  }

  @Test("a closed downloader stays closed")
  func closed() async throws {
    try await Fixture.run { fixture async throws in
      fixture.downloader.close()
      fixture.downloader.replaceSession()
      #expect(await fixture.failure(of: try fixture.request("/a"))?.code == .closed)
    }
  }

  @Test("a session has no cache, cookies or additional fields of its platform configuration")
  func basedOn() async throws {
    let platform = URLSessionConfiguration.default
    platform.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    platform.requestCachePolicy = .returnCacheDataElseLoad
    platform.httpAdditionalHeaders = ["Authorization": "Basic eDp5"]
    platform.httpCookieAcceptPolicy = .always
    let origin = try await OriginServer.start()
    origin.setRoute("/a", Route(pattern(50), fields: [.cacheControl: "max-age=60", .setCookie: "a=b; Path=/"]))
    let downloader = SessionDownloader(platform: platform)
    let head = try HTTPRequest(resource: origin.url("/a"))

    for round in 0..<4 {
      if round == 2 { downloader.replaceSession(platform: platform) }
      #expect(try await downloader.download(DownloadRequest(head: head)).body.collect() == pattern(50))
    }

    #expect(origin.counters(for: "/a").requests == 4)
    #expect(origin.requests.allSatisfy { $0.fields[.authorization] == nil && $0.fields[.cookie] == nil })
    downloader.close()
    await origin.stop()
  }

  #if os(Linux)
  // In a separate process, because released sessions have crashed Foundation (swift-corelibs-foundation #5469).
  @Test("2,000 downloads complete or are cancelled without a crash while the session is replaced 300 times")
  func underLoad() async {
    await #expect(processExitsWith: .success) {
      let origin = try await OriginServer.start()
      origin.setRoute("/a", Route(pattern(20_000)))
      let head = try HTTPRequest(resource: origin.url("/a"))
      let downloader = SessionDownloader()
      let (whole, cancelled) = (Recorder<Void>(), Recorder<Void>())
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for _ in 0..<300 {
            downloader.replaceSession()
            await Task.yield()
          }
        }
        for lane in 0..<8 {
          group.addTask {
            for round in 0..<250 {
              let handle = DownloadTask()
              let request = DownloadRequest(head: head)
              if (lane + round) % 7 == 0 { Task { handle.cancel() } }
              do throws(CacheError) {
                let data = try await downloader.download(request, as: handle).body.collect()
                guard data == pattern(20_000) else { throw CacheError(.other, reason: "wrong bytes") }
                whole.record(())
              } catch {
                guard error.isCancellation else { throw error }
                cancelled.record(())
              }
            }
          }
        }
        try await group.waitForAll()
      }
      guard whole.values.count + cancelled.values.count == 2000, whole.values.count > 1000 else {
        throw CacheError(.other, reason: "\(whole.values.count) and \(cancelled.values.count)")
      }
      downloader.close()
      await origin.stop()
    }
  }
  #endif
}
#endif
