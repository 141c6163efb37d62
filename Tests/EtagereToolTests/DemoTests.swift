#if Tool
import Etagere
import Foundation
import Testing

extension Tag {
  /// Takes more than ten seconds, by the nature of what it measures.
  @Tag static var slow: Self
}

@Suite("etagere demo", .timeLimit(.minutes(30)))
struct DemoTests {
  private struct Document: Decodable {
    struct Row: Decodable {
      var pass: String
      var loads: Int
      var requests: Int
      var notModified: Int
      var bodyBytes: Int
    }

    struct Limit: Decodable {
      var milliseconds: Double
      var allowedMilliseconds: Double
    }

    struct Table: Decodable {
      var parallel: Int
      var rows: [Row]
      var revalidated: Limit
    }

    var tables: [Table]
    var limits: [Limit]
    var sharedLoads: Int
    var sharedRequests: Int
    var wrong: [String]
  }

  @Test("its passes ask for what they must and for nothing else, and leave nothing behind", .tags(.slow))
  func passes() async throws {
    // Given
    let place = try Workplace()

    // When: the cache in a folder of ours, so that nothing of other runs is in the way.
    let page = place.path + "/report.html"
    let run = try await place.run(["demo", "--json", "--cache-dir", place.cache, "--report", page])

    // Then
    #expect(run.status == 0)
    #expect(run.complaints.isEmpty)
    #expect(run.lines.count == 1)
    let report = try #require(try run.documents(Document.self).first)
    #expect(report.wrong.isEmpty)
    #expect(report.tables.map(\.parallel) == [1, 6])
    for table in report.tables {
      let content = table.rows.first?.bodyBytes ?? 0
      #expect((28_000...67_200).contains(content))
      #expect(
        table.rows.map(\.pass) == [
          "no cache", "cold", "memory", "disk, as after a restart", "stale, unchanged (304)", "stale, changed (200)",
          "stale, offline",
        ])
      #expect(table.rows.map(\.loads) == Array(repeating: 56, count: 7))
      #expect(table.rows.map(\.requests) == [56, 56, 0, 0, 56, 56, 0])
      #expect(table.rows.map(\.notModified) == [0, 0, 0, 0, 56, 0, 0])
      #expect(table.rows.map(\.bodyBytes) == [content, content, 0, 0, 0, content, 0])
    }
    #expect(report.limits.count == 2)
    // Faster than the link allows would mean that the link is none.
    for limit in report.limits + report.tables.map(\.revalidated) {
      #expect(limit.milliseconds >= limit.allowedMilliseconds * 0.95)
    }
    #expect(report.sharedLoads == 100 && report.sharedRequests == 1)

    // Then: the page shows every load of every pass.
    let html = String(decoding: try place.read("report.html"), as: UTF8.self)
    #expect(html.contains("\(14 * 56 + 6 + 100) loads · 0 failed"))
    #expect(html.components(separatedBy: "<section id=\"group-").count - 1 == 17)
  }

  private struct ImageDocument: Decodable {
    struct Pass: Decodable {
      var name: String
      var requests: Int
      var notModified: Int
      var bodyBytes: Int
      var made: Int
      var stored: Int
      var kept: Int
    }

    var passes: [Pass]
    var sheet: String
    var wrong: [String]
  }

  @Test("its pictures are made once, confirmed, and made again where the original has changed", .tags(.slow))
  func images() async throws {
    // Given
    let place = try Workplace()
    let sheet = place.path + "/sheet.png"

    // When
    let run = try await place.run(["demo", "--images", "--json", "--cache-dir", place.cache, "--sheet", sheet])

    // Then
    #expect(run.status == 0)
    #expect(run.complaints.isEmpty)
    let report = try #require(try run.documents(ImageDocument.self).first)
    #expect(report.wrong.isEmpty)
    #expect(report.passes.map(\.requests) == [12, 0, 0, 0, 12, 12, 0])
    #expect(report.passes.map(\.notModified) == [0, 0, 0, 0, 12, 8, 0])
    #expect(report.passes.map { $0.bodyBytes > 0 } == [true, false, false, false, false, true, false])
    #expect(report.passes.map(\.made) == [12, 0, 12, 0, 0, 4, 4])
    #expect(report.passes.map(\.stored) == [0, 0, 0, 12, 0, 0, 8])
    #expect(report.passes.map(\.kept) == [0, 12, 0, 0, 12, 8, 0])
    #expect(report.sheet == sheet)
    let header = try ImageHeader(of: try place.read("sheet.png"))
    #expect(header.format == .png && header.size.width > 6 * 160 && header.size.height > 4 * 120 + 2 * 96)
    #expect(place.files(below: place.cache).isEmpty)
  }

  @Test("a contact sheet that can't be written is said, with its path")
  func noSheet() async throws {
    let place = try Workplace()
    let run = try await place.run(["demo", "--images", "--cache-dir", place.cache, "--sheet", place.path + "/none/sheet.png"])
    #expect(run.status == 23)
    #expect(run.complaints.count == 1 && run.complaints.first?.contains("none/sheet.png") == true)
  }
}
#endif
