import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@Suite("Interim responses")
struct InterimResponseTests {
  private final class Reports: Sendable {
    private let lines = Lock<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func add(_ head: HTTPResponse) {
      lines.withLock { $0.append("\(head.status.code) \(head.headerFields[.contentLanguage] ?? "-")") }
    }
  }

  private let fixture: ManagerFixture
  private let reports = Reports()

  init() throws { fixture = try ManagerFixture() }

  private func respond() async throws -> CachedResponse {
    try await fixture.manager.respond(to: HTTPRequest(resource: fixture.url)) { [reports] in reports.add($0) }
  }

  private func hinted(_ text: String, _ cacheControl: String) -> ScriptedResponse {
    .ok(text, etag: "\"\(text)\"", cacheControl: cacheControl)
      .preceded(
        by: HTTPResponse(status: .init(code: 102)), HTTPResponse(status: .earlyHints, headerFields: [.contentLanguage: "la"]))
  }

  @Test("they are reported to the caller whose request is forwarded, and leave nothing in the stored response")
  func forwarded() async throws {
    fixture.network.respond(to: fixture.url, with: hinted("new", "max-age=60"))
    let first = try await respond()
    #expect(first.head.status == .ok && first.head.headerFields[.contentLanguage] == nil)
    #expect(try await first.body.collect() == Data("new".utf8))
    #expect(reports.all == ["102 -", "103 la"])

    let second = try await respond()
    #expect(second.status.isHit && second.head.headerFields[.contentLanguage] == nil)
    #expect(try await second.body.collect() == Data("new".utf8))
    #expect(reports.all.count == 2)
  }

  @Test("those of a background revalidation are not reported, because its caller has a response")
  func background() async throws {
    fixture.network.respond(
      to: fixture.url, with: hinted("old", "max-age=1, stale-while-revalidate=60"), hinted("new", "max-age=60"))
    _ = try await respond().body.collect()
    fixture.clock.advance(by: .seconds(5))
    #expect(try await respond().body.collect() == Data("old".utf8))
    // The next request comes after the revalidation has been stored. Otherwise it could begin another one.
    try await Polling.until { fixture.network.requests.count == 2 }
    try await Polling.until { try await fixture.send(options: RequestOptions { $0.policy = .cacheOnly }).text == "new" }
    #expect(reports.all.count == 2)
    try fixture.network.verify()
  }
}
