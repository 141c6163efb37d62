import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Bodies that are damaged on the way")
struct DamagedBodyTests {
  private static let damaged = CacheError(.damagedContentCoding, reason: "the body's gzip coding is damaged")

  /// An answer that may be kept, then one whose coding is damaged: told by the engine, or found while the body is read.
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

  @Test("a stored answer stands in, as it does for one that is cut short", arguments: [false, true])
  func standIn(inBody: Bool) async throws {
    let fixture = try fixture("max-age=0", inBody: inBody)
    _ = try await fixture.manager.load(fixture.url)

    let shown = try await fixture.manager.load(fixture.url)

    #expect(shown.text == "old" && shown.validation == .failed)
  }

  @Test("but not where its origin forbids that (RFC 9111 §5.2.2.2)", arguments: [false, true])
  func forbidden(inBody: Bool) async throws {
    let fixture = try fixture("max-age=0, must-revalidate", inBody: inBody)
    _ = try await fixture.manager.load(fixture.url)

    #expect(try await fixture.failure(fixture.url).code == .damagedContentCoding)
  }
}
