import Foundation

/// Numbers of bytes and other values as text.
enum Text {
  /// Reads a number of bytes, with an optional suffix K, M, G or T for powers of 1,000.
  static func bytes(_ text: String) -> Int? {
    let powers: [Character: Int] = ["K": 1_000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000]
    let factor = text.last.flatMap { powers[$0] }
    guard let number = Int(factor == nil ? text : String(text.dropLast())), number >= 0 else { return nil }
    let (product, overflow) = number.multipliedReportingOverflow(by: factor ?? 1)
    return overflow ? nil : product
  }

  /// Returns a number of bytes in the largest unit that gives at least 1.
  static func bytes(_ count: Int) -> String {
    switch count {
    case ..<1_000: "\(count) B"
    case ..<1_000_000: decimal(Double(count) / 1e3) + " KB"
    case ..<1_000_000_000: decimal(Double(count) / 1e6) + " MB"
    default: decimal(Double(count) / 1e9) + " GB"
    }
  }

  /// Returns a number with about three digits, and without a fraction from 100 on.
  static func decimal(_ value: Double) -> String {
    fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0)
  }

  /// Returns a number with a given number of digits after the point.
  static func fixed(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

  /// Returns a number with a comma between groups of three digits.
  static func count(_ number: Int) -> String {
    var groups: [String] = []
    var rest = String(number)
    while rest.count > 3 {
      groups.insert(String(rest.suffix(3)), at: 0)
      rest.removeLast(3)
    }
    return ([rest] + groups).joined(separator: ",")
  }

  /// Returns a duration in milliseconds below one second, and in seconds from there on.
  static func time(_ seconds: Double) -> String {
    seconds < 1 ? decimal(seconds * 1_000) + " ms" : decimal(seconds) + " s"
  }
}
