import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Damaged response bodies")
struct DamagedBodyTests {
  private static let damaged = CacheError(.damagedContentCoding, reason: "the body's gzip coding is damaged")

  /// Returns a storable response, and then one with a damaged content coding. The engine reports the damage, or the reader finds
  /// it.
  private func fixture(_ cacheControl: String, inBody: Bool) throws -> ManagerFixture {
    let asked = Lock(0)
    let network = ClosureDownloader { _ throws(CacheError) in
      let number = asked.withLock { asked in
        asked += 1
        return asked
      }
      guard number > 1 else { return .streaming(["old"], fields: [.eTag: "\"1\"", .cacheControl: cacheControl]) }
      guard inBody else { throw Self.damaged }
      return .streaming(["new, and th"], then: Self.damaged, fields: [.eTag: "\"2\""])
    }
    return try ManagerFixture { $0.downloader = network }
  }

  @Test("a stored response is served in place of a damaged body", arguments: [false, true])
  func standIn(inBody: Bool) async throws {
    let fixture = try fixture("max-age=0", inBody: inBody)
    _ = try await fixture.manager.load(fixture.url)

    let shown = try await fixture.manager.load(fixture.url)

    #expect(shown.text == "old" && shown.validation == .failed)
  }

  @Test("a stored response is not served if its origin forbids stale use (RFC 9111 §5.2.2.2)", arguments: [false, true])
  func forbidden(inBody: Bool) async throws {
    let fixture = try fixture("max-age=0, must-revalidate", inBody: inBody)
    _ = try await fixture.manager.load(fixture.url)

    #expect(try await fixture.failure(fixture.url).code == .damagedContentCoding)
  }
}
