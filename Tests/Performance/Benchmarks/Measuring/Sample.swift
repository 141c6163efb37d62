import Foundation

/// A summary of the numbers from all rounds.
struct Sample: Encodable, Sendable {
  let median: Double
  let low: Double
  let high: Double
  let count: Int

  /// Summarizes the finite numbers, or returns `nil` if there are none. The ratio to a missing measurement is not finite.
  init?(_ values: [Double]) {
    let values = values.filter(\.isFinite)
    guard let low = values.min(), let high = values.max() else { return nil }
    self.low = low
    self.high = high
    count = values.count
    median = Self.median(values)
  }

  /// Returns the middle value, the mean of the two middle values, or 0 for an empty array.
  static func median(_ values: [Double]) -> Double {
    guard !values.isEmpty else { return 0 }
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
  }
}
