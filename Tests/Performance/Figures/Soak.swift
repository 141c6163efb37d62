import Foundation

/// The minutes of a soak, as `Scripts/soak` writes them with `--csv`.
struct Soak {
  private static let members = ["node", "gateway", "service"]

  private let rows: [[String: Double]]

  static func read(_ file: URL) throws -> Soak {
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    guard let heading = lines.first else { throw PlotError("\(file.lastPathComponent) is empty") }
    let columns = heading.split(separator: ",").map(String.init)
    return Soak(
      rows: try lines.dropFirst().map { line in
        let cells = line.split(separator: ",", omittingEmptySubsequences: false)
        guard cells.count == columns.count else { throw PlotError("\(file.lastPathComponent): '\(line)' has other columns") }
        // A process that was restarted during the whole minute has no memory.
        let pairs = zip(columns, cells).compactMap { column, cell in Double(cell).map { (column, $0) } }
        return Dictionary(uniqueKeysWithValues: pairs)
      })
  }

  /// The rows of the run with the most minutes. Only the rows of one run belong to the same processes.
  private var longestPart: [[String: Double]] {
    Dictionary(grouping: rows) { $0["part"] ?? 0 }.sorted { $0.key < $1.key }.map(\.value).max { $0.count < $1.count } ?? []
  }

  private var parts: Int { Set(rows.map { $0["part"] ?? 0 }).count }

  private var minutes: Int { Int(rows.last?["minute"] ?? 0) }

  // MARK: The chart

  /// The memory of the processes that run from the beginning to the end.
  var memoryChart: LineChart {
    let lines = Self.members.map { member in
      let measured = rows.filter { $0["\(member)_mb"] != nil && $0["minute"] != nil }
      // Each part has new processes.
      let starts = measured.indices.dropFirst().filter { measured[$0]["part"] != measured[$0 - 1]["part"] }
      return LineChart.Line(
        label: member, points: measured.map { ($0["minute"] ?? 0, $0["\(member)_mb"] ?? 0) }, starts: Set(starts))
    }
    let medians = Self.members.map { member in
      "\(member): \(Format.number(early("\(member)_mb"), 0)) in the second ten minutes, "
        + "\(Format.number(late("\(member)_mb"), 0)) in the last ten"
    }
    let separation = parts > 1 ? ", separated by part" : ""
    return LineChart(
      title: "Resident memory during a soak, MB",
      subtitle: "The processes that run from the beginning to the end, median of each minute\(separation)",
      axis: .init(label: "minutes", marks: stride(from: 0.0, through: Double(minutes), by: 20).map { $0 }), lines: lines,
      description: medians.joined(separator: "; "))
  }

  // MARK: The table

  /// Returns the median of a column in the second ten minutes of the longest part.
  private func early(_ column: String) -> Double { Self.median(longestPart.dropFirst(10).prefix(10).compactMap { $0[column] }) }

  /// Returns the median of a column in the last ten minutes of the longest part.
  private func late(_ column: String) -> Double { Self.median(longestPart.suffix(10).compactMap { $0[column] }) }

  private static func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return 0 }
    return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
  }

  private func sum(_ columns: String...) -> Double {
    rows.reduce(0) { sum, row in sum + columns.reduce(0) { $0 + (row[$1] ?? 0) } }
  }

  /// The counts of all parts, and the medians of the second and of the last ten minutes of the longest one.
  var table: String {
    get throws {
      guard longestPart.count >= 30 else {
        throw PlotError("the longest part of Soak.csv has only \(longestPart.count) minutes")
      }
      let part = parts > 1 ? "The table is about the longest of \(parts) parts, with \(longestPart.count) minutes. " : ""
      var lines = [
        "\(minutes) minutes: \(number(sum("loads"))) loads, "
          + "\(number(sum("timedOut", "connection", "body", "status", "storage"))) "
          + "of them failed with an error that a disturbance explains; \(number(sum("purges"))) purges; "
          + "\(number(sum("stops"))) stops, \(number(sum("kills"))) kills and \(number(sum("restarts"))) restarts of processes. "
          + "Wrong \(number(sum("wrong"))), unexplained \(number(sum("unexplained"))), hung \(number(sum("hung"))), "
          + "lost \(number(sum("lost"))). \(part)The last column compares the last ten minutes with the second ten.",
        "",
        "| median | second ten minutes | last ten minutes | difference |", "| --- | --- | --- | --- |",
      ]
      let figures =
        Self.members.map { ("memory of the \($0), MB", "\($0)_mb", 1) }
        + Self.members.map { ("descriptors of the \($0)", "\($0)_descriptors", 0) }
        + Self.members.map { ("threads of the \($0)", "\($0)_threads", 0) }
        + [
          ("disk space, MB", "disk_mb", 1), ("p50 of hits in memory, µs", "p50_us", 1),
          ("p99 of hits in memory, µs", "p99_us", 1), ("p99.9 of hits in memory, µs", "p999_us", 1),
        ]
      for (name, column, digits) in figures {
        let (early, late) = (early(column), late(column))
        let change = early > 0 ? (late / early - 1) * 100 : 0
        lines.append(
          "| \(name) | \(Format.number(early, digits)) | \(Format.number(late, digits)) | "
            + "\(change >= 0.05 ? "+" : "")\(Format.decimal(change, 1)) % |")
      }
      return lines.joined(separator: "\n")
    }
  }

  private func number(_ value: Double) -> String { Format.number(value, 0) }
}
