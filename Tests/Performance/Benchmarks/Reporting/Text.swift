import Foundation

/// The formatting of numbers and columns.
enum Text {
  static func decimal(_ value: Double, _ decimals: Int) -> String {
    guard value.isFinite else { return "-" }
    let scale = pow(10, Double(decimals))
    let scaled = (abs(value) * scale).rounded()
    let whole = Int64(scaled / scale)
    let sign = value < 0 && scaled > 0 ? "-" : ""
    guard decimals > 0 else { return "\(sign)\(whole)" }
    let fraction = String(Int64(scaled) % Int64(scale))
    return "\(sign)\(whole).\(String(repeating: "0", count: decimals - fraction.count))\(fraction)"
  }

  static func left(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: max(0, width - text.count)) }

  static func right(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
}

extension ScenarioReport {
  /// The table, the goals, and the failures.
  var text: String {
    var lines = ["\(name): \(title)"]
    var columns: [String] = []
    for figure in rows.flatMap(\.figures) where !columns.contains(figure.heading) { columns.append(figure.heading) }
    let cells = rows.map { row in
      columns.map { column in row.figures.first { $0.heading == column }?.text ?? "" }
    }
    let nameWidth = rows.map(\.name.count).max() ?? 0
    let widths = columns.indices.map { index in max(columns[index].count, cells.map { $0[index].count }.max() ?? 0) }
    func line(_ name: String, _ cells: [String]) -> String {
      "  " + Text.left(name, nameWidth) + zip(cells, widths).map { "   " + Text.right($0, $1) }.joined()
    }
    if !rows.isEmpty { lines.append(line("", columns)) }
    lines += zip(rows, cells).map { line($0.name, $1) }
    lines += goals.map { "  \($0.text)" }
    lines += remarks.map { "  \($0)" }
    lines += failures.map { "  FAILED: \($0)" }
    return lines.joined(separator: "\n")
  }
}

extension Figure {
  fileprivate var heading: String { unit == .count ? name : "\(name) \(unit.rawValue)" }
}
