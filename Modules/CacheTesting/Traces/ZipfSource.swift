#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A source of ranks by Zipf's law: the probability of rank k is proportional to 1 / k^exponent.
package struct ZipfSource: Sendable {
  private let cumulative: [Double]
  private var generator: SplitMix

  package init(objects: Int, exponent: Double, seed: UInt64) {
    var sum = 0.0
    cumulative = (1...max(1, objects)).map { rank in
      sum += pow(Double(rank), -exponent)
      return sum
    }
    generator = SplitMix(state: seed)
  }

  /// Returns the next rank, starting at 0.
  package mutating func next() -> Int {
    let draw = Double(generator.next() >> 11) / Double(1 << 53) * (cumulative.last ?? 1)
    var (low, high) = (0, cumulative.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if cumulative[middle] < draw { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
