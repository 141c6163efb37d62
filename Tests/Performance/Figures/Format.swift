import Foundation

/// The formatting of figures in charts and tables.
enum Format {
  /// Returns a number with a fixed number of decimals. A value that rounds to zero has no sign.
  static func decimal(_ value: Double, _ decimals: Int) -> String {
    let text = String(format: "%.\(decimals)f", value)
    return text.contains { ("1"..."9").contains($0) } ? text : text.replacing("-", with: "")
  }

  /// Returns a number with thousands separators if it has no decimals.
  static func number(_ value: Double, _ decimals: Int) -> String {
    let text = decimal(value, decimals)
    guard decimals == 0, abs(value) >= 10_000 else { return text }
    var groups: [Substring] = []
    var rest = text[...]
    while rest.count > 3 {
      groups.insert(rest.suffix(3), at: 0)
      rest = rest.dropLast(3)
    }
    return ([rest] + groups).joined(separator: ",")
  }

  static func decimals(of unit: String) -> Int {
    switch unit {
    case "1/s", "MB/s", "": 0
    case "ns", "µs", "ms", "MB", "MiB", "%": 1
    default: 2
    }
  }

  /// Returns the decimals for a whole column, so that its values are comparable. Large values need none, small
  /// ratios need more.
  static func decimals(of unit: String, values: [Double]) -> Int {
    let least = values.filter { $0 > 0 }.min() ?? 0
    if unit == "×", least < 0.01 { return 4 }
    return least >= 100 ? 0 : decimals(of: unit)
  }

  /// Returns the median of a sample, and its range if it has one.
  static func spread(_ sample: Figures.Sample, _ decimals: Int) -> String {
    let (median, low, high) = (
      number(sample.median, decimals), number(sample.low, decimals), number(sample.high, decimals)
    )
    return low == high ? median : "\(median) (\(low)–\(high))"
  }

  /// Returns the factor from a unit to the one that charts use. For times, that is the second.
  static func scale(of unit: String) -> Double { ["ns": 1e-9, "µs": 1e-6, "ms": 1e-3][unit] ?? 1 }

  /// Returns a value with three significant digits and its unit. Times use the unit that suits their size.
  static func value(_ value: Double, _ unit: String) -> String {
    let times = ["ns", "µs", "ms", "s"]
    var (value, unit) = (value, unit)
    if var index = times.firstIndex(of: unit) {
      while value >= 1_000, index + 1 < times.count { (value, index) = (value / 1_000, index + 1) }
      while value < 1, value > 0, index > 0 { (value, index) = (value * 1_000, index - 1) }
      unit = times[index]
    }
    let decimals = unit == "×" ? 2 : value >= 100 ? 0 : value >= 10 ? 1 : 2
    return unit.isEmpty ? number(value, decimals) : "\(number(value, decimals)) \(unit)"
  }

  static func date(_ date: Date) -> String {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    let parts = calendar.dateComponents([.year, .month, .day], from: date)
    return String(format: "%04d-%02d-%02d", parts.year ?? 0, parts.month ?? 0, parts.day ?? 0)
  }
}
