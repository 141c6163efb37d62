#if Origin
import CacheTesting
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("From end to end, with every default", .timeLimit(.minutes(30)))
struct JourneyTests {
  @Test("cold, memory, after a restart, unchanged, changed, offline: each from where it should come")
  func wholeJourney() async throws {
    try await Street.run { street in
      // Given: an origin that wants to be asked each time.
      let (old, new) = (pattern(30_000), pattern(20_000, seed: 5))
      let url = street.origin.url("/picture")
      street.origin.setRoute("/picture", Route(old, contentType: "image/png", etag: "v1", fields: [.cacheControl: "no-cache"]))
      let first = try street.manager()

      let cold = try await first.load(url)
      #expect(cold.data == old)
      #expect(cold.source == .network)
      #expect(cold.validation == .notAttempted)
      #expect(cold.bytesOnWire == 30_000)

      // When it is unchanged: asked, and not sent again.
      let unchanged = try await first.load(url)
      #expect(unchanged.data == old)
      #expect(unchanged.source == .revalidated)
      #expect(unchanged.validation == .notModified)
      #expect(unchanged.bytesOnWire == 0)
      #expect(unchanged.revision == cold.revision)
      #expect(street.origin.counters(for: "/picture").notModified == 1)
      #expect(street.origin.counters(for: "/picture").bodyBytesSent == 30_000)

      // After a restart too.
      let second = try street.manager()
      let restarted = try await second.load(url)
      #expect(restarted.data == old)
      #expect(restarted.source == .revalidated)
      #expect(street.origin.counters(for: "/picture").bodyBytesSent == 30_000)

      // When it has changed: the new one, for the old condition.
      street.origin.setRoute("/picture", Route(new, contentType: "image/png", etag: "v2", fields: [.cacheControl: "no-cache"]))
      let changed = try await second.load(url)
      #expect(changed.data == new)
      #expect(changed.source == .network)
      #expect(changed.validation == .modified)
      #expect(changed.revision != cold.revision)
      #expect(street.origin.requests(for: "/picture").last?.fields[.ifNoneMatch] == "\"v1\"")

      #expect(street.requests("/picture") == 4)
    }
  }

  @Test("what is fresh is asked for once: then memory has it, and after a restart the disk")
  func fresh() async throws {
    try await Street.run { street in
      let url = street.origin.url("/fresh")
      street.origin.setRoute("/fresh", Route(pattern(5_000), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      let first = try street.manager()
      #expect(try await first.load(url).source == .network)
      #expect(try await first.load(url).source == .memory)
      #expect(try await first.lookup(url) == .memory(isFresh: true))

      let second = try street.manager()
      #expect(try await second.lookup(url) == .disk(isFresh: true))
      let stored = try await second.load(url)
      #expect(stored.source == .disk)
      #expect(stored.data == pattern(5_000))
      #expect(stored.validation == .notAttempted)
      #expect(try await second.load(url).source == .memory)
      #expect(street.requests("/fresh") == 1)
    }
  }

  @Test("what is stored is shown when nobody answers, and says so", arguments: [false, true])
  func offline(_ isRestarted: Bool) async throws {
    try await Street.run { street in
      // Given
      let url = street.origin.url("/a")
      street.origin.setRoute("/a", Route(pattern(5_000), etag: "v1", fields: [.cacheControl: "max-age=0"]))
      let first = try street.manager()
      _ = try await first.load(url)
      let manager = isRestarted ? try street.manager() : first

      // When
      await street.origin.stop()
      let shown = try await manager.load(url)

      // Then
      #expect(shown.data == pattern(5_000))
      #expect(shown.validation == .failed)
      #expect(shown.source == (isRestarted ? .disk : .memory))
      #expect(shown.isStale)
      #expect(await failure { _ = try await manager.load(street.origin.url("/never")) }?.code == .connectionRefused)
    }
  }

  @Test("what must be revalidated is not shown when nobody answers")
  func mustRevalidate() async throws {
    try await Street.run { street in
      let url = street.origin.url("/a")
      street.origin.setRoute("/a", Route(pattern(50), etag: "v1", fields: [.cacheControl: "max-age=0, must-revalidate"]))
      let manager = try street.manager()
      _ = try await manager.load(url)
      await street.origin.setLink(.offline)
      let error = await failure { _ = try await manager.load(url) }
      #expect(error?.isUnreachable == true || error?.code == .unacceptableStatus)
      await street.origin.setLink(nil)
      #expect(try await manager.load(url).source == .revalidated)
    }
  }

  @Test("a hundred loads of one cold URL are one request")
  func sharing() async throws {
    try await Street.run { street in
      // Given: an answer that is held until everybody has asked.
      let gate = Gate()
      let joined = JoinCounter()
      let url = street.origin.url("/cold")
      street.origin.setRoute(
        "/cold", Route(pattern(100_000), etag: "v1", fields: [.cacheControl: "max-age=60"], delivery: .gated(by: gate)))
      let manager = try street.manager { $0.observer = joined }

      // When
      let loads = (0..<100).map { _ in Task { try await manager.load(url) } }
      await joined.waitFor(99)
      gate.open()

      // Then
      let expected = pattern(100_000)
      for load in loads { #expect(try await load.value.data == expected) }
      #expect(street.requests("/cold") == 1)
      #expect(street.origin.counters(for: "/cold").bodyBytesSent == 100_000)
    }
  }

  @Test("two managers on one folder see each other's answers, and each other's removals")
  func sharedFolder() async throws {
    try await Street.run { street in
      for path in ["/a", "/b"] {
        street.origin.setRoute(path, Route(Data(path.utf8), etag: "v1", fields: [.cacheControl: "max-age=3600"]))
      }
      let (one, other) = (try street.manager(), try street.manager())
      let (a, b) = (street.origin.url("/a"), street.origin.url("/b"))

      _ = try await one.load(a)
      _ = try await other.load(b)
      #expect(try await other.load(a).source == .disk)
      #expect(try await one.load(b).source == .disk)
      #expect(street.origin.counters.requests == 2)

      try await one.remove(a)
      #expect(try await other.contains(a, in: .disk) == false)
      #expect(try await other.contains(b, in: .disk))
    }
  }
}

/// Counts loads that were joined to one under way.
private final class JoinCounter: LoadObserver {
  let id = ComponentID.unique(JoinCounter.self)
  private let count = WatchedState(0)

  func observe(_ event: CacheEvent, of load: LoadID) {
    if case .joined = event { count.update { $0 += 1 } }
  }

  func waitFor(_ number: Int) async { await count.wait { $0 >= number } }
}
#endif
