import Foundation

/// The results of passes as text in columns, for a terminal and for a view with a font of fixed width.
enum ResultTable {
  private static let nameWidth = 26
  private static let columns = [
    ("images", 8), ("1st frame", 11), ("first ms", 10), ("final ms", 10), ("p95 ms", 9), ("requests", 10), ("304s", 6),
    ("body bytes", 12), ("updates/row", 13),
  ]

  static let header =
    "pass".padding(toLength: nameWidth, withPad: " ", startingAt: 0) + columns.map { right($0.0, $0.1) }.joined()

  /// Returns the line of a pass. A value that is not known is a dash.
  static func line(_ result: PassResult) -> String {
    let updates = result.updates.map { decimal(Double($0) / Double(max(1, result.images)), 2) }
    let cells: [String?] = [
      "\(result.images)", result.firstFrame.map { "\($0)" }, result.meanFirstMilliseconds.map(time),
      result.meanFinalMilliseconds.map(time), result.p95FinalMilliseconds.map(time), result.requests.map { "\($0)" },
      result.notModified.map { "\($0)" }, result.bodyBytes.map { "\($0)" }, updates,
    ]
    let name = result.name.padding(toLength: max(nameWidth, result.name.count), withPad: " ", startingAt: 0)
    return name + zip(cells, columns).map { right($0 ?? "–", $1.1) }.joined()
  }

  /// The header and a line for each pass.
  static func text(_ results: [PassResult]) -> String { ([header] + results.map(line)).joined(separator: "\n") }

  /// Returns a time with three significant digits.
  private static func time(_ milliseconds: Double) -> String {
    switch milliseconds {
    case ..<0.9995: decimal(milliseconds, 3)
    case ..<9.995: decimal(milliseconds, 2)
    case ..<99.95: decimal(milliseconds, 1)
    default: decimal(milliseconds, 0)
    }
  }

  private static func decimal(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

  private static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }
}
