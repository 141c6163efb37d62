import CacheTesting
import CacheUI
import Testing

@testable import PhotoList

@MainActor
@Suite("A measured row")
struct MeasuredRowTests {
  private let fixture: ListFixture

  init() throws { fixture = try ListFixture() }

  @Test("a row that loads its image has one update, and both times are that of the response")
  func loads() async throws {
    fixture.network.respond(to: fixture.url, with: try ListFixture.image(1).after(.milliseconds(120)))
    let row = fixture.appearedRow()
    #expect(!row.isInFirstFrame && row.first == nil && row.final == nil)
    try await passes(.milliseconds(120))
    await row.ended()
    #expect(row.first == .milliseconds(120) && row.final == .milliseconds(120) && row.updates == 1)
  }

  @Test("a row finds a cached image in the turn in which it appears, and is not updated")
  func memory() async throws {
    try await cache()
    let row = fixture.appearedRow()
    #expect(row.isInFirstFrame && row.first == .zero && row.final == .zero)
    await row.ended()
    #expect(row.updates == 0 && fixture.network.requests.count == 1)
  }

  @Test("a row shows a stale image at once, and is not updated if the origin confirms it")
  func confirmed() async throws {
    try await cache()
    fixture.network.respond(to: fixture.url, with: .notModified(cacheControl: "max-age=60").after(.milliseconds(50)))
    fixture.clock.advance(by: .seconds(61))
    let row = fixture.appearedRow()
    #expect(row.isInFirstFrame && row.final == nil)
    try await passes(.milliseconds(50))
    await row.ended()
    #expect(row.first == .zero && row.final == .milliseconds(50) && row.updates == 0)
  }

  @Test("a row is updated once if the origin has another image")
  func replaced() async throws {
    try await cache()
    fixture.network.respond(to: fixture.url, with: try ListFixture.image(2).after(.milliseconds(50)))
    fixture.clock.advance(by: .seconds(61))
    let row = fixture.appearedRow()
    try await passes(.milliseconds(50))
    await row.ended()
    #expect(row.first == .zero && row.final == .milliseconds(50) && row.updates == 1)
  }

  @Test("a row whose load fails has an end and no image")
  func failure() async throws {
    fixture.network.respond(to: fixture.url, with: .ok("text", cacheControl: "max-age=60"))
    let row = fixture.appearedRow()
    await row.ended()
    #expect(row.first == nil && row.final == .zero && row.updates == 0)
  }

  private func cache() async throws {
    fixture.network.respond(to: fixture.url, with: try ListFixture.image(1))
    await fixture.appearedRow().ended()
  }

  /// Advances the clock as soon as the response waits for it.
  private func passes(_ duration: Duration) async throws {
    try await Polling.until { fixture.clock.pendingSleeps == 1 }
    fixture.clock.advance(by: duration)
  }
}
