#if Tool
import CacheTelemetry
import Etagere

/// The durations of loads in bins of 1, 2 and 5 times a power of ten, by color.
struct DurationHistogram {
  struct Bin {
    /// The upper bound of the bin, in microseconds, which is not part of it.
    var bound: Int
    var counts: [LoadColor: Int] = [:]

    var count: Int { counts.values.reduce(0, +) }
  }

  /// The bins from the first that is not empty to the last.
  let bins: [Bin]

  init(_ loads: [LoadRecord]) {
    var bins = Self.bounds.map { Bin(bound: $0) }
    for load in loads {
      let microseconds = load.duration / .microseconds(1)
      let index = bins.firstIndex { microseconds < Double($0.bound) } ?? bins.count - 1
      bins[index].counts[LoadColor(load), default: 0] += 1
    }
    let first = bins.firstIndex { $0.count > 0 } ?? 0
    let last = bins.lastIndex { $0.count > 0 } ?? 0
    self.bins = loads.isEmpty ? [] : Array(bins[first...last])
  }

  /// From 1 µs to 100 s. A longer load is in the last bin.
  private static let bounds =
    (0...7).flatMap { power in
      let unit = (0..<power).reduce(1) { unit, _ in unit * 10 }
      return [1, 2, 5].map { $0 * unit }
    } + [100_000_000]

  /// The bound as text: `50 µs`, `2 ms`, `1 s`.
  static func text(_ bound: Int) -> String {
    switch bound {
    case ..<1_000: "\(bound) µs"
    case ..<1_000_000: "\(bound / 1_000) ms"
    default: "\(bound / 1_000_000) s"
    }
  }
}
#endif
