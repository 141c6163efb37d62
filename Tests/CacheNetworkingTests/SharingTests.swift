#if Origin
import CacheCore
import CacheNetworking
import Foundation
import HTTPTypes
import CacheTesting
import LoopbackOrigin
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Sharing one transfer", .timeLimit(.minutes(30))) struct SharingTests {
  @Test("a hundred equal requests from ten threads are one transfer, and all complete")
  func oneTransfer() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(50_000), delivery: .gated(by: gate)))
      let request = try fixture.request("/a")
      let handles = (0..<100).map { _ in DownloadTask() }
      let results = Recorder<Data?>()
      for thread in 0..<10 {
        Thread.detachNewThread {
          for handle in handles[thread * 10..<thread * 10 + 10] {
            Task { results.record(try? await fixture.downloader.download(request, as: handle).body.collect()) }
          }
        }
      }

      for handle in handles { #expect(await handle.started) }
      gate.open()

      #expect(await results.wait(for: 100) == Array(repeating: pattern(50_000), count: 100))
      #expect(fixture.origin.counters(for: "/a").requests == 1)
    }
  }

  @Test("each sharer reads at its own pace, and the bytes stay until the slowest has them")
  func ownPace() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.joinLimit = 1000
    try await Fixture.run(configuration) { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(400_000), delivery: OriginDelivery(bodyGate: gate)))
      let quick = try await fixture.get("/a")
      let slow = try await fixture.get("/a")
      gate.open()

      #expect(try await quick.body.collect() == pattern(400_000))
      #expect(try await slow.body.collect() == pattern(400_000))
      #expect(fixture.origin.counters(for: "/a").requests == 1)
      #expect(quick.metrics().bytesOnWire == 400_000)
    }
  }

  @Test("who comes late gets everything from the start")
  func lateJoiner() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      let delivery = OriginDelivery(bodyGate: gate, bodyGateOffset: 30_000)
      fixture.origin.setRoute("/a", Route(pattern(60_000), delivery: delivery))
      let first = try await fixture.get("/a")
      var iterator = first.body.makeAsyncIterator()
      let start = try await read(30_000, from: &iterator)

      let late = try await fixture.get("/a")
      gate.open()

      #expect(try await late.body.collect() == pattern(60_000))
      #expect(try await start + read(.max, from: &iterator) == pattern(60_000))
      #expect(fixture.origin.counters(for: "/a").requests == 1)
    }
  }

  @Test("who comes after the start was dropped gets a transfer of its own")
  func tooLate() async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.joinLimit = 1000
    try await Fixture.run(configuration) { fixture async throws in
      let gate = Gate()
      let delivery = OriginDelivery(bodyGate: gate, bodyGateOffset: 30_000)
      fixture.origin.setRoute("/a", Route(pattern(60_000), delivery: delivery))
      let first = try await fixture.get("/a")
      var iterator = first.body.makeAsyncIterator()
      let start = try await read(30_000, from: &iterator)

      let late = try await fixture.get("/a")
      gate.open()

      #expect(try await late.body.collect() == pattern(60_000))
      #expect(try await start + read(.max, from: &iterator) == pattern(60_000))
      #expect(fixture.origin.counters(for: "/a").requests == 2)
    }
  }

  @Test("who comes after the end gets a transfer of its own")
  func afterTheEnd() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100)))
      let first = try await fixture.get("/a")
      #expect(try await first.body.collect() == pattern(100))

      #expect(try await fixture.get("/a").body.collect() == pattern(100))

      #expect(fixture.origin.counters(for: "/a").requests == 2)
    }
  }

  enum Difference: CaseIterable { case field, method, idleTimeout, networks, configuration }

  @Test("what can change the answer keeps requests apart", arguments: Difference.allCases)
  func apart(difference: Difference) async throws {
    var configuration = SessionDownloader.Configuration()
    configuration.sharesTransfers = difference != .configuration
    try await Fixture.run(configuration) { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: .gated(by: gate)))
      let one = try fixture.request("/a", method: difference == .method ? .post : .get)
      var other = one
      if difference == .field { other.head.headerFields[.accept] = "image/webp" }
      if difference == .idleTimeout { other.idleTimeout = .seconds(30) }
      if difference == .networks { other.networkAccess = [.expensive] }
      let second = other

      async let a = fixture.downloader.download(one).body.collect()
      async let b = fixture.downloader.download(second).body.collect()
      await gate.arrived(2)
      gate.open()

      #expect(try await a == b)
    }
  }

  @Test("a failure is told to every sharer")
  func sharedFailure() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute(
        "/a", Route(pattern(1000), delivery: OriginDelivery(gate: gate, fault: .cut(afterBodyBytes: 400))))
      let request = try fixture.request("/a")
      let handles = [DownloadTask(), DownloadTask()]
      let codes = Recorder<CacheError.Code?>()
      for handle in handles {
        Task {
          do {
            _ = try await fixture.downloader.download(request, as: handle).body.collect()
            codes.record(nil)
          } catch { codes.record((error as? CacheError)?.code) }
        }
      }
      for handle in handles { #expect(await handle.started) }
      gate.open()

      #expect(await codes.wait(for: 2) == [.truncatedBody, .truncatedBody])
      #expect(fixture.origin.counters(for: "/a").requests == 1)
    }
  }

  @Test("the highest priority of the sharers counts, also when it rises later")
  func priority() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: OriginDelivery(bodyGate: gate)))
      let (handle, low) = (DownloadTask(), LoadPriority(.low))
      let first = try await fixture.downloader.download(fixture.request("/a", priority: low), as: handle)
      let task = try #require(handle.sessionTask).task
      #expect(task.priority == 0.25)

      let second = try await fixture.downloader.download(fixture.request("/a", priority: LoadPriority(.high)))
      #expect(task.priority == 0.75)
      low.raise(to: .normal)
      #expect(task.priority == 0.75)
      low.raise(to: .veryHigh)
      #expect(task.priority == 1)

      gate.open()
      #expect(try await first.body.collect() == second.body.collect())
    }
  }

  @Test("a priority that many downloads have used has no observers left, however they end")
  func observersEnd() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(100)))
      let gate = Gate()
      fixture.origin.setRoute("/held", Route(pattern(100), delivery: OriginDelivery(bodyGate: gate)))
      let priority = LoadPriority(.low)
      for _ in 0..<20 {
        _ = try await fixture.downloader.download(fixture.request("/a", priority: priority)).body.collect()
      }
      #expect(priority.observers == 0)

      let held = try await fixture.downloader.download(fixture.request("/held", priority: priority))
      let cancelled = try await fixture.downloader.download(fixture.request("/held", priority: priority))
      var dropped: DownloadResponse? = try await fixture.downloader.download(fixture.request("/held", priority: priority))
      #expect(priority.observers == 3 && dropped != nil)
      cancelled.body.source.cancel()
      dropped = nil
      #expect(priority.observers == 1)

      gate.open()
      #expect(try await held.body.collect() == pattern(100))
      #expect(priority.observers == 0)
    }
  }
}
#endif
