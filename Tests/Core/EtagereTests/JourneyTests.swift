#if Origin
import CacheTesting
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("Complete loads with the default configuration", .timeLimit(.minutes(30)))
struct JourneyTests {
  @Test("each load in the life of a resource has the expected source")
  func wholeJourney() async throws {
    try await OriginFixture.run { fixture in
      // Given an origin that requires revalidation
      let (old, new) = (pattern(30_000), pattern(20_000, seed: 5))
      let url = fixture.origin.url("/image")
      fixture.origin.setRoute("/image", Route(old, contentType: "image/png", etag: "v1", fields: [.cacheControl: "no-cache"]))
      let first = try fixture.manager()

      let cold = try await first.load(url)
      #expect(cold.data == old)
      #expect(cold.source == .network)
      #expect(cold.validation == .notAttempted)
      #expect(cold.bytesOnWire == 30_000)

      // When it is unchanged, it is revalidated and not sent again
      let unchanged = try await first.load(url)
      #expect(unchanged.data == old)
      #expect(unchanged.source == .revalidated)
      #expect(unchanged.validation == .notModified)
      #expect(unchanged.bytesOnWire == 0)
      #expect(unchanged.revision == cold.revision)
      #expect(fixture.origin.counters(for: "/image").notModified == 1)
      #expect(fixture.origin.counters(for: "/image").bodyBytesSent == 30_000)

      // The same applies after a restart
      let second = try fixture.manager()
      let restarted = try await second.load(url)
      #expect(restarted.data == old)
      #expect(restarted.source == .revalidated)
      #expect(fixture.origin.counters(for: "/image").bodyBytesSent == 30_000)

      // When it has changed, the conditional request gets the new response
      fixture.origin.setRoute("/image", Route(new, contentType: "image/png", etag: "v2", fields: [.cacheControl: "no-cache"]))
      let changed = try await second.load(url)
      #expect(changed.data == new)
      #expect(changed.source == .network)
      #expect(changed.validation == .modified)
      #expect(changed.revision != cold.revision)
      #expect(fixture.origin.requests(for: "/image").last?.fields[.ifNoneMatch] == "\"v1\"")

      #expect(fixture.requests("/image") == 4)
    }
  }

  @Test("a fresh response is requested once, and is then served from memory, and after a restart from disk")
  func fresh() async throws {
    try await OriginFixture.run { fixture in
      let url = fixture.origin.url("/fresh")
      fixture.origin.setRoute("/fresh", Route(pattern(5_000), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let first = try fixture.manager()
      #expect(try await first.load(url).source == .network)
      #expect(try await first.load(url).source == .memory)
      #expect(try await first.lookup(url) == .memory(isFresh: true))

      let second = try fixture.manager()
      #expect(try await second.lookup(url) == .disk(isFresh: true))
      let stored = try await second.load(url)
      #expect(stored.source == .disk)
      #expect(stored.data == pattern(5_000))
      #expect(stored.validation == .notAttempted)
      #expect(try await second.load(url).source == .memory)
      #expect(fixture.requests("/fresh") == 1)
    }
  }

  @Test("a stored response is served if no origin responds, and states that", arguments: [false, true])
  func offline(_ isRestarted: Bool) async throws {
    try await OriginFixture.run { fixture in
      // Given
      let url = fixture.origin.url("/a")
      fixture.origin.setRoute("/a", Route(pattern(5_000), etag: "v1", fields: [.cacheControl: "max-age=0"]))
      let first = try fixture.manager()
      _ = try await first.load(url)
      let manager = isRestarted ? try fixture.manager() : first

      // When
      await fixture.origin.stop()
      let shown = try await manager.load(url)

      // Then
      #expect(shown.data == pattern(5_000))
      #expect(shown.validation == .failed)
      #expect(shown.source == (isRestarted ? .disk : .memory))
      #expect(shown.isStale)
      #expect(await failure { _ = try await manager.load(fixture.origin.url("/never")) }?.code == .connectionRefused)
    }
  }

  @Test("a response that must be revalidated is not served if no origin responds")
  func mustRevalidate() async throws {
    try await OriginFixture.run { fixture in
      let url = fixture.origin.url("/a")
      fixture.origin.setRoute("/a", Route(pattern(50), etag: "v1", fields: [.cacheControl: "max-age=0, must-revalidate"]))
      let manager = try fixture.manager()
      _ = try await manager.load(url)
      await fixture.origin.setLink(.offline)
      let error = await failure { _ = try await manager.load(url) }
      #expect(error?.isUnreachable == true || error?.code == .unacceptableStatus)
      await fixture.origin.setLink(nil)
      #expect(try await manager.load(url).source == .revalidated)
    }
  }

  @Test("a hundred loads of one URL that is not cached make one request")
  func sharing() async throws {
    try await OriginFixture.run { fixture in
      // Given a response that is held until every load has begun
      let gate = Gate()
      let joined = JoinCounter()
      let url = fixture.origin.url("/cold")
      fixture.origin.setRoute(
        "/cold", Route(pattern(100_000), etag: "v1", fields: [.cacheControl: "max-age=60"], delivery: .gated(by: gate)))
      let manager = try fixture.manager { $0.observer = joined }

      // When
      let loads = (0..<100).map { _ in Task { try await manager.load(url) } }
      await joined.waitFor(99)
      gate.open()

      // Then
      let expected = pattern(100_000)
      for load in loads { #expect(try await load.value.data == expected) }
      #expect(fixture.requests("/cold") == 1)
      #expect(fixture.origin.counters(for: "/cold").bodyBytesSent == 100_000)
    }
  }

  @Test("two managers with one folder see each other's responses and removals")
  func sharedFolder() async throws {
    try await OriginFixture.run { fixture in
      for path in ["/a", "/b"] {
        fixture.origin.setRoute(path, Route(Data(path.utf8), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      }
      let (one, other) = (try fixture.manager(), try fixture.manager())
      let (a, b) = (fixture.origin.url("/a"), fixture.origin.url("/b"))

      _ = try await one.load(a)
      _ = try await other.load(b)
      #expect(try await other.load(a).source == .disk)
      #expect(try await one.load(b).source == .disk)
      #expect(fixture.origin.counters.requests == 2)

      try await one.remove(a)
      #expect(try await other.contains(a, in: .disk) == false)
      #expect(try await other.contains(b, in: .disk))
    }
  }
}

/// Counts the loads that joined another one.
private final class JoinCounter: LoadObserver {
  let id = ComponentID.unique(JoinCounter.self)
  private let count = WatchedState(0)

  func observe(_ event: CacheEvent, of load: LoadID) {
    if case .joined = event { count.update { $0 += 1 } }
  }

  func waitFor(_ number: Int) async { await count.wait { $0 >= number } }
}
#endif
