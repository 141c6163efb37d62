#if Origin
import CacheCore
@testable import CacheNetworking
import Foundation
import HTTPTypes
import CacheTesting
import LoopbackOrigin
import Testing

@Suite("Lifetime", .timeLimit(.minutes(30))) struct LifetimeTests {
  /// An object that records its own deinitialization.
  private final class Witness: Sendable {
    private let ended: Recorder<Void>

    init(_ ended: Recorder<Void>) { self.ended = ended }

    deinit { ended.record(()) }
  }

  @Test("a released downloader completes its transfers and is then deallocated")
  func released() async throws {
    let origin = try await OriginServer.start()
    let gate = Gate()
    origin.setRoute("/a", Route(pattern(50_000), delivery: OriginDelivery(bodyGate: gate, bodyGateOffset: 10_000)))
    let head = try HTTPRequest(resource: origin.url("/a"))
    let (sessionEnded, delegateEnded) = (Recorder<Bool>(), Recorder<Void>())
    weak var observed: SessionDownloader?
    var response: DownloadResponse?
    do {
      let witness = Witness(delegateEnded)
      let downloader = SessionDownloader(observer: { event in
        withExtendedLifetime(witness) {}
        if case .sessionEnded(let error) = event { sessionEnded.record(error == nil) }
      })
      observed = downloader
      response = try await downloader.download(DownloadRequest(head: head))
    }

    #expect(observed == nil, "a transfer does not retain its downloader")
    #expect(sessionEnded.values.isEmpty, "the transfer still runs")
    gate.open()
    #expect(try await response?.body.collect() == pattern(50_000))
    response = nil
    #expect(await sessionEnded.wait(for: 1) == [true])
    await delegateEnded.wait(for: 1)
    await origin.stop()
  }

  @Test("a closed downloader cancels its transfers and refuses new downloads")
  func closed() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(50), delivery: .gated(by: gate)))
      let request = try fixture.request("/a")
      let running = Task { await fixture.failure(of: request) }
      await gate.arrived()

      fixture.downloader.close()
      fixture.downloader.close()

      #expect(await running.value?.isCancellation == true)
      #expect(await fixture.failure(of: request)?.code == .closed)
      #expect(await fixture.sessionEnds.wait(for: 1) == [true])
    }
  }

  @Test("a downloader closed with finishingTransfers completes its transfers")
  func closedGently() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(50), delivery: OriginDelivery(bodyGate: gate)))
      let response = try await fixture.get("/a")

      fixture.downloader.close(finishingTransfers: true)
      #expect(await fixture.failure(of: try fixture.request("/a"))?.code == .closed)

      gate.open()
      #expect(try await response.body.collect() == pattern(50))
    }
  }

  @Test("every transfer ends once")
  func completions() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(50)))
      fixture.origin.setRoute("/b", .fault(.cut(afterBodyBytes: 1)))
      fixture.origin.setRoute("/c", Route(pattern(50), delivery: .gated(by: gate)))

      _ = try await fixture.get("/a").body.collect()
      _ = await fixture.failure(of: try fixture.request("/b"))
      await fixture.transferEnds.wait(for: 2)
      let request = try fixture.request("/c")
      let task = Task { await fixture.failure(of: request) }
      await gate.arrived()
      task.cancel()
      _ = await task.value

      #expect(await fixture.transferEnds.wait(for: 3).map(\.error) == [nil, .truncatedBody, .cancelled])
    }
  }

  #if os(Linux)
  // In a separate process, because descriptors are counted per process.
  @Test("500 requests that complete, fail or are cancelled leak no descriptor")
  func descriptors() async {
    await #expect(processExitsWith: .success) {
      try await Fixture.run { fixture async throws in
        fixture.origin.setRoute("/a", Route(pattern(2000)))
        fixture.origin.setRoute("/cut", .fault(.cut(afterBodyBytes: 1)))
        fixture.origin.setRoute("/held", Route(pattern(2000), delivery: OriginDelivery(bodyGate: Gate())))
        func rounds(_ count: Int) async throws {
          for round in 0..<count {
            _ = try await fixture.get("/a").body.collect()
            if round % 10 == 1 { _ = await fixture.failure(of: try fixture.request("/cut")) }
            if round % 10 == 2 { _ = try await fixture.get("/held").head }
          }
          await fixture.origin.waitForOpenConnections(atMost: 6)
        }
        func descriptors() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }

        try await rounds(50)
        let before = try descriptors()
        try await rounds(500)
        let after = try descriptors()

        guard after <= before + 16 else { throw CacheError(.other, reason: "\(before) descriptors, then \(after)") }
      }
    }
  }

  // In a separate process, because an ended session that is asked for a task terminates the process.
  @Test(
    "each download that begins while the downloader closes completes, is cancelled or is refused", arguments: [true, false])
  func closedAmongBeginners(finishing: Bool) async {
    await #expect(processExitsWith: .success) { [finishing] in
      let origin = try await OriginServer.start()
      origin.setRoute("/a", Route(pattern(2000)))
      for _ in 0..<100 {
        let downloader = SessionDownloader()
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<12 {
            let request = DownloadRequest(head: try HTTPRequest(resource: origin.url("/a?\(number % 8)")))
            group.addTask {
              do throws(CacheError) {
                let body = try await downloader.download(request).body.collect()
                guard body == pattern(2000) else { throw CacheError(.other, reason: "\(body.count) bytes") }
              } catch {
                guard error.code == .closed || (error.isCancellation && !finishing) else { throw error }
              }
            }
            if number == 6 { group.addTask { downloader.close(finishingTransfers: finishing) } }
          }
          try await group.waitForAll()
        }
      }
      await origin.stop()
    }
  }

  // In a separate process, because released sessions have crashed Foundation (swift-corelibs-foundation #5469).
  @Test("downloaders can be created and released, busy or idle, without a crash")
  func comeAndGo() async {
    await #expect(processExitsWith: .success) {
      let origin = try await OriginServer.start()
      origin.setRoute("/a", Route(pattern(2000)))
      let head = try HTTPRequest(resource: origin.url("/a"))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<200 {
          group.addTask {
            let response = try await SessionDownloader().download(DownloadRequest(head: head))
            if round % 2 == 0 { _ = try await response.body.collect() }
            if round % 5 == 0 { SessionDownloader().close() }
          }
        }
        try await group.waitForAll()
      }
      await origin.stop()
    }
  }
  #endif
}
#endif
