import Foundation

/// The findings of a run.
struct Report: Codable {
  struct Row: Codable {
    var scenario: Scenario
    var title: String
    var expectation: String
    /// By the raw value of the loader.
    var findings: [String: Finding]
  }

  var system: String
  var loaders: [LoaderKind]
  var rows: [Row] = []

  /// The table of the page.
  var markdown: String {
    var lines = [
      "| scenario | passes with | \(loaders.map(\.title).joined(separator: " | ")) |",
      "| --- | --- |\(String(repeating: " --- |", count: loaders.count))",
    ]
    for row in rows {
      let cells = loaders.map { loader -> String in
        guard let finding = row.findings[loader.rawValue] else { return "" }
        return switch finding.verdict {
        case .passes: "✓ \(finding.text)"
        case .fails: "✗ \(finding.text)"
        case .doesNotApply: "– does not apply: \(finding.text)"
        }
      }
      lines.append("| \(row.title) | \(row.expectation) | \(cells.joined(separator: " | ")) |")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  var json: Data {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
      return try encoder.encode(self) + Data("\n".utf8)
    }
  }

  /// The scenarios that Etagere does not pass, which are defects of this package. Every scenario applies to it.
  var defects: [Row] {
    rows.filter { row in row.findings[LoaderKind.etagere.rawValue].map { $0.verdict != .passes } ?? false }
  }
}
