import CacheTesting
import CacheUI
import Foundation
import Testing

@testable import PhotoList

@MainActor
@Suite("The PhotoList comparison")
struct ComparisonTests {
  @Test("each pass makes exactly the requests that it needs, and updates only the rows whose image changes")
  func passes() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "photolist-\(Revision.random())")
    defer { try? FileManager.default.removeItem(at: folder) }
    var content = try SmallContent.make()
    let bytes = content.byteCount
    var lines: [String] = []
    let report = try await Comparison.run(content, folder: folder, link: nil) { lines.append($0) }

    #expect(report.differences.isEmpty, "\(report.differences)")
    #expect(
      report.passes.map(\.name) == [
        "no cache", "no cache, again", "cold", "from memory", "from disk, new manager", "stale, unchanged", "stale, 9 changed",
        "stale, offline",
      ])
    #expect(report.passes.map(\.images) == Array(repeating: 59, count: 8))
    #expect(report.passes.map(\.firstFrame) == [0, 0, 0, 59, 0, 59, 59, 59])
    #expect(report.passes.map(\.requests) == [59, 59, 59, 0, 0, 59, 59, 0])
    #expect(report.passes.map(\.notModified) == [0, 0, 0, 0, 0, 59, 50, 0])
    content.change()
    let changed = zip(ListRow.all, content.files).filter(\.0.changes).reduce(0) { $0 + $1.1.bytes.count }
    #expect(report.passes.map(\.bodyBytes) == [bytes, bytes, bytes, 0, 0, 0, changed, 0])
    #expect(report.passes.map(\.updates) == [59, 59, 59, 0, 59, 0, 9, 0])
    #expect(lines == [ResultTable.header] + report.passes.map(ResultTable.line))
  }

  @Test("the report names each count and each row that differs from the expected one")
  func differences() async throws {
    let fixture = try ListFixture()
    let urls = try ListRow.all.map { try #require(URL(string: "https://example.com\($0.path)")) }
    for url in urls.dropLast() { fixture.network.respond(to: url, with: try ListFixture.image(1)) }
    let pass = await ListPass.run(urls, with: fixture.manager, clock: fixture.clock)
    var result = pass.result("cold")
    result.set(ServerCounts(requests: 59))
    let differences = PassExpectation(
      counts: ServerCounts(requests: 58), updates: { $0.id == 0 ? 2 : 1 },
      validation: { $0.id == 1 ? .notModified : .notAttempted }
    ).differences(from: result, of: pass)
    #expect(differences.prefix(2) == ["cold: 58 images, not 59", "cold: 59 requests, not 58"])
    #expect(differences.contains("cold: /symbol-1.png was updated 1 times, not 2 times"))
    #expect(
      differences.contains("cold: the outcome of the revalidation of /symbol-2.png is notAttempted, not notModified"))
    #expect(differences.contains("cold: /symbol-56.png was updated 0 times, not 1 times"))
    #expect(differences.count == 6 && differences[5].hasPrefix("cold: /symbol-56.png: "))
  }
}
