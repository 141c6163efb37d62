import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheManager

@Suite("The log of removals and purges")
struct InvalidationLogTests {
  private let log = InvalidationLog()

  private func outcome(_ resource: String, since position: Int) -> PurgeMode? {
    let now = Timestamp(seconds: 0)
    let metadata = StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a"),
      response: HTTPResponse(status: .ok), requestTime: now, responseTime: now, revision: .random(),
      freshness: Freshness(generatedAt: now, freshUntil: now))
    return log.outcome(for: CacheKey(resource: resource), metadata, since: position)
  }

  private func purge(_ resource: String, _ mode: PurgeMode) throws -> Purge {
    try Purge(.key(resource), mode, in: .partition(nil)) { _ throws(CacheError) in resource }
  }

  @Test("the purge of a resource affects its earlier responses, and no others")
  func resource() throws {
    let (mine, other) = (ResourceID.make(uri: "", key: "mine"), ResourceID.make(uri: "", key: "other"))
    let before = log.current
    log.advance(with: try purge("mine", .soft))
    #expect(outcome(mine, since: before) == .soft && log.mayHaveMatched(mine, since: before))
    log.advance(with: try purge("mine", .hard))
    log.advance(with: try purge("mine", .soft))
    #expect(outcome(mine, since: before) == .hard)
    #expect(outcome(mine, since: log.current) == nil)
    #expect(outcome(other, since: before) == nil && !log.mayHaveMatched(other, since: before))
  }

  @Test("a response is treated as removed if more removals of other resources than the log remembers followed its request")
  func forgotten() {
    let before = log.current
    for number in 0..<InvalidationLog.resourceMemory { log.advance(removing: "https://example.com/\(number)") }
    #expect(outcome("https://example.com/a", since: before) == nil)
    #expect(outcome("https://example.com/0", since: before) == .hard)
    for number in 0..<InvalidationLog.resourceMemory { log.advance(removing: "https://example.com/other/\(number)") }
    #expect(outcome("https://example.com/a", since: before) == .hard)
    #expect(outcome("https://example.com/a", since: log.current) == nil)
  }

  @Test("entries that left the store with one removal are those of its resource, or of any resource")
  func removals() throws {
    let mine = "https://example.com/a"
    let before = log.current
    log.advance(afterRemovalOf: mine)
    #expect(log.mayHaveRemoved(mine, since: before) && !log.mayHaveRemoved(mine, since: log.current))
    for number in 0..<1_000 { log.advance(afterRemovalOf: "https://example.com/removed/\(number)") }
    let others = (0..<64).filter { log.mayHaveRemoved("https://example.com/\($0)", since: before) }
    #expect(others.isEmpty)
    // Removals that are no longer remembered count for every resource, but not as purges.
    for number in 0..<2 * InvalidationLog.resourceMemory { log.advance(afterRemovalOf: "https://example.com/many/\(number)") }
    #expect(log.mayHaveRemoved("https://example.com/other", since: before))
    #expect(outcome("https://example.com/other", since: before) == nil)
    #expect(outcome(mine, since: before) == nil)
    log.advance(afterRemovalOf: nil)
    #expect((0..<64).allSatisfy { log.mayHaveRemoved("https://example.com/\($0)", since: before) })
  }
}

@Suite("Promotions to memory during removals")
struct PromotionTests {
  /// Removals of another resource.
  enum Removal: CaseIterable, Sendable { case remove, removeFromMemory, purge, unsafeRequest }

  @Test("a hit on disk is promoted to memory although other resources are removed during its lookup", arguments: Removal.allCases)
  func unrelated(_ removal: Removal) async throws {
    let (fixture, store) = try ManagerFixture.held()
    fixture.network.respond(to: fixture.url, with: .ok("text", cacheControl: "max-age=600"))
    _ = try await fixture.manager.load(fixture.url)
    let log = fixture.manager.core.environment.invalidations
    // Few paths share their position in the log with the resource. The test uses one that does not.
    let path = try #require(
      (0..<100).map { "/\($0)" }.first { path in
        let probe = InvalidationLog()
        probe.advance(afterRemovalOf: "https://example.com\(path)")
        return !probe.mayHaveRemoved(fixture.url.absoluteString, since: 0)
      })
    let other = try fixture.url(path)
    fixture.network.serve(other) { $0.method == .get ? .ok("other", cacheControl: "max-age=600") : .response(.noContent) }
    _ = try await fixture.manager.load(other)
    fixture.restart()
    let look = store.hold(.look)
    let load = Task { try await fixture.manager.load(fixture.url).source }
    await look.arrived()
    let before = log.current

    switch removal {
    case .remove: try await fixture.manager.remove(other)
    case .removeFromMemory: try await fixture.manager.remove(other, from: .memory)
    case .purge: try await fixture.manager.purge(.url(other), .soft)
    case .unsafeRequest: _ = try await fixture.send([:], .put, path: path, sending: "x")
    }
    #expect(log.current > before)
    look.open()

    #expect(try await load.value == .disk)
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
  }

  @Test("a hit on disk is not promoted if its resource is removed from memory during its lookup")
  func related() async throws {
    let (fixture, store) = try ManagerFixture.held()
    fixture.network.respond(to: fixture.url, with: .ok("text", cacheControl: "max-age=600"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()
    let look = store.hold(.look)
    let load = Task { try await fixture.manager.load(fixture.url).source }
    await look.arrived()
    try await fixture.manager.remove(fixture.url, from: .memory)
    look.open()
    #expect(try await load.value == .disk)
    #expect(try await fixture.manager.load(fixture.url).source == .disk)
  }
}
