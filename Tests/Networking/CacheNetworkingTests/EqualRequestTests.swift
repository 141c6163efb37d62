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

@Suite("Equal requests", .timeLimit(.minutes(30))) struct EqualRequestTests {
  @Test("ten threads send equal requests separately, and all complete")
  func threads() async throws {
    try await Fixture.run { fixture async throws in
      fixture.origin.setRoute("/a", Route(pattern(50_000)))
      let request = try fixture.request("/a")
      let results = Recorder<Data?>()
      for _ in 0..<10 {
        Thread.detachNewThread {
          for _ in 0..<10 {
            Task { results.record(try? await fixture.downloader.download(request).body.collect()) }
          }
        }
      }

      #expect(await results.wait(for: 100) == Array(repeating: pattern(50_000), count: 100))
      #expect(fixture.origin.counters(for: "/a").requests == 100)
    }
  }

  @Test("raising the priority of a request raises that of its transfer, which is never lowered")
  func priority() async throws {
    try await Fixture.run { fixture async throws in
      let gate = Gate()
      fixture.origin.setRoute("/a", Route(pattern(100), delivery: OriginDelivery(bodyGate: gate)))
      let (handle, priority) = (DownloadTask(), LoadPriority(.low))
      let response = try await fixture.downloader.download(fixture.request("/a", priority: priority), as: handle)
      let task = try #require(handle.sessionTask)
      #expect(task.priority == 0.25)

      priority.raise(to: .high)
      #expect(task.priority == 0.75)
      priority.raise(to: .normal)
      #expect(task.priority == 0.75)
      priority.raise(to: .veryHigh)
      #expect(task.priority == 1)
      #if canImport(FoundationNetworking)
      #expect(task.task.priority == URLSessionTask.defaultPriority, "setting it can make Foundation trap")
      #else
      #expect(task.task.priority == 1)
      #endif

      gate.open()
      #expect(try await response.body.collect() == pattern(100))
    }
  }

  @Test("a priority has no observers left after many downloads have used it")
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
