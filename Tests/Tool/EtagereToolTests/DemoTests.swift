#if Tool
import Etagere
import Foundation
import Testing

@testable import EtagereTool

extension Tag {
  /// A test that takes more than ten seconds.
  @Tag static var slow: Self
}

@Suite("etagere-cli demo", .timeLimit(.minutes(30)))
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

  @Test("each pass sends the expected requests, and the cache folder is removed", .tags(.slow))
  func passes() async throws {
    // Given
    let fixture = try ToolFixture()

    // When
    let page = fixture.path + "/report.html"
    let run = try await fixture.run(["demo", "--json", "--cache-dir", fixture.cache, "--report", page])

    // Then
    #expect(run.status == 0)
    #expect(run.errors.isEmpty)
    #expect(run.lines.count == 1)
    let report = try #require(try run.documents(Document.self).first)
    #expect(report.wrong.isEmpty)
    #expect(report.tables.map(\.parallel) == [1, 6])
    for table in report.tables {
      let content = table.rows.first?.bodyBytes ?? 0
      #expect((28_000...67_200).contains(content))
      #expect(
        table.rows.map(\.pass) == [
          "no cache", "cold", "memory", "disk, after a restart", "stale, unchanged (304)", "stale, changed (200)",
          "stale, offline",
        ])
      #expect(table.rows.map(\.loads) == Array(repeating: 56, count: 7))
      #expect(table.rows.map(\.requests) == [56, 56, 0, 0, 56, 56, 0])
      #expect(table.rows.map(\.notModified) == [0, 0, 0, 0, 56, 0, 0])
      #expect(table.rows.map(\.bodyBytes) == [content, content, 0, 0, 0, content, 0])
    }
    #expect(report.limits.count == 2)
    // A time below the minimum of the link would mean that the link is not simulated.
    for limit in report.limits + report.tables.map(\.revalidated) {
      #expect(limit.milliseconds >= limit.allowedMilliseconds * 0.95)
    }
    #expect(report.sharedLoads == 100 && report.sharedRequests == 1)

    // Then: the page shows every load of every pass.
    let html = String(decoding: try fixture.read("report.html"), as: UTF8.self)
    #expect(html.contains("\(14 * 56 + 6 + 100) loads · 0 failed"))
    #expect(html.components(separatedBy: "<section id=\"group-").count - 1 == 17)
    #expect(fixture.files(below: fixture.cache).isEmpty)
  }

  @Test("the tables fit into 80 columns, and --quiet prints no notes", .tags(.slow))
  func columns() async throws {
    let fixture = try ToolFixture()
    let run = try await fixture.run(["demo", "--quiet", "--cache-dir", fixture.cache])
    #expect(run.status == 0 && run.errors.isEmpty)
    #expect(run.lines.allSatisfy { $0.count <= 80 })
    #expect(run.lines.first == "One load at a time")
    #expect(run.lines.last == "All counts and bytes are as expected.")
    #expect(run.lines.count { $0.hasPrefix("stale, unchanged (304) ") } == 2)
    #expect(!run.lines.contains { $0.contains("on a link of") || $0.contains("Mean of the cold") })
  }

  @Test("a cell as wide as its column has a space before it")
  func wideCell() { #expect(Text.row("a", 2, ["123", "4"], [3, 2]) == "a  123 4") }

  #if VIPS || canImport(ImageIO)
  private struct ImageDocument: Decodable {
    struct Pass: Decodable {
      var name: String
      var requests: Int
      var notModified: Int
      var bodyBytes: Int
      var transformed: Int
      var disk: Int
      var memory: Int
    }

    var passes: [Pass]
    var sheet: String
    var wrong: [String]
  }

  @Test("the image demo makes each thumbnail once, and again if the original has changed", .tags(.slow))
  func images() async throws {
    // Given
    let fixture = try ToolFixture()
    let sheet = fixture.path + "/sheet.png"

    // When
    let run = try await fixture.run(["demo", "--images", "--json", "--cache-dir", fixture.cache, "--sheet", sheet])

    // Then
    #expect(run.status == 0)
    #expect(run.errors.isEmpty)
    let report = try #require(try run.documents(ImageDocument.self).first)
    #expect(report.wrong.isEmpty)
    #expect(report.passes.map(\.requests) == [12, 0, 0, 0, 12, 12, 0])
    #expect(report.passes.map(\.notModified) == [0, 0, 0, 0, 12, 8, 0])
    #expect(report.passes.map { $0.bodyBytes > 0 } == [true, false, false, false, false, true, false])
    #expect(report.passes.map(\.transformed) == [12, 0, 12, 0, 0, 4, 4])
    #expect(report.passes.map(\.disk) == [0, 0, 0, 12, 0, 0, 8])
    #expect(report.passes.map(\.memory) == [0, 12, 0, 0, 12, 8, 0])
    #expect(report.sheet == sheet)
    let header = try ImageHeader(of: try fixture.read("sheet.png"))
    #expect(header.format == .png && header.size.width > 6 * 160 && header.size.height > 4 * 120 + 2 * 96)
    #expect(fixture.files(below: fixture.cache).isEmpty)
  }

  @Test("a contact sheet that cannot be written has the status 73")
  func noSheet() async throws {
    let fixture = try ToolFixture()
    let run = try await fixture.run([
      "demo", "--images", "--cache-dir", fixture.cache, "--sheet", fixture.path + "/none/sheet.png",
    ])
    #expect(run.status == 73)
    #expect(run.errors.count == 1 && run.errors.first?.contains("none/sheet.png") == true)
  }
  #endif
}
#endif
