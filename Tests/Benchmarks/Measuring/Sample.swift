import Foundation

/// Numbers of the same kind, one a round.
struct Sample: Encodable, Sendable {
  let median: Double
  let low: Double
  let high: Double
  let count: Int

  /// Of the numbers that are some: a ratio to what was not measured is none. Nil for no numbers at all.
  init?(_ values: [Double]) {
    let values = values.filter(\.isFinite)
    guard let low = values.min(), let high = values.max() else { return nil }
    self.low = low
    self.high = high
    count = values.count
    median = Self.median(values)
  }

  /// The middle one, or the mean of the two in the middle; 0 for none.
  static func median(_ values: [Double]) -> Double {
    guard !values.isEmpty else { return 0 }
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
  }
}
