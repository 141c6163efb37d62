/// Statistics over the durations of loads.
struct LoadStatistics: Sendable {
  private let sorted: [Duration]

  init(_ durations: [Duration]) { sorted = durations.sorted() }

  var count: Int { sorted.count }

  /// The arithmetic mean in milliseconds, or `nil` without loads.
  var mean: Double? {
    sorted.isEmpty ? nil : sorted.reduce(.zero, +) / .milliseconds(1) / Double(sorted.count)
  }

  /// Returns the shortest duration in milliseconds that at least this share of the loads did not exceed, or `nil` without loads.
  ///
  /// - Parameter share: From 0 to 1.
  func percentile(_ share: Double) -> Double? {
    guard let last = sorted.indices.last else { return nil }
    let rank = (Double(sorted.count) * share).rounded(.up)
    return sorted[min(max(Int(rank) - 1, 0), last)] / .milliseconds(1)
  }
}
