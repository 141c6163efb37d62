import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import CacheManager

@Suite("Lookups that another load overtakes")
struct LookupRaceTests {
  /// Returns a load after a lookup that found no response to use.
  private func lookUp(_ fixture: ManagerFixture) throws -> (ResolvedRequest, KnownResponses) {
    let load = try ResolvedRequest(ResourceRequest(fixture.url), fixture.manager.core)
    var known: KnownResponses?
    #expect(fixture.manager.core.immediateHit(load, ResourceTransform.bytes, &known) == nil)
    return (load, try #require(known))
  }

  @Test("a load whose lookup found nothing uses the response that an equal load stored before it started")
  func overtakenMiss() async throws {
    // Given
    let fixture = try ManagerFixture { $0.store = nil }
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    let (load, known) = try lookUp(fixture)

    // When
    let first = try await fixture.manager.load(fixture.url)
    let second = try await fixture.manager.core.outcome(of: load, known: known, ResourceTransform.bytes).get()

    // Then
    #expect(first.source == .network && second.source == .memory)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a load whose lookup found nothing uses the response of an earlier load that has ended since")
  func endedLoad() async throws {
    // Given
    let fixture = try ManagerFixture { $0.store = nil }
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60").held(by: gate))
    let first = Task { try await fixture.manager.load(fixture.url).source }
    await gate.arrived()
    let (load, known) = try lookUp(fixture)

    // When
    gate.open()
    #expect(try await first.value == .network)
    let second = try await fixture.manager.core.outcome(of: load, known: known, ResourceTransform.bytes).get()

    // Then
    #expect(second.source == .memory)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("a load whose lookup found a stale response does not revalidate what an equal load has revalidated since")
  func overtakenRevalidation() async throws {
    // Given
    let fixture = try ManagerFixture { $0.store = nil }
    fixture.network.respond(
      to: fixture.url, with: .ok("bytes", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.clock.advance(by: .seconds(61))
    let (load, known) = try lookUp(fixture)

    // When
    let first = try await fixture.manager.load(fixture.url)
    let second = try await fixture.manager.core.outcome(of: load, known: known, ResourceTransform.bytes).get()

    // Then
    #expect(first.source == .revalidated && second.source == .memory)
    #expect(fixture.network.requests.count == 2)
  }
}
