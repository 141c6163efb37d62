import CacheTesting
import DiskStore

/// The operations of a process that will be killed. They are derived from a seed, so the parent process knows them.
struct KillPlan {
  enum Operation: Sendable {
    case store(Int, Value)
    /// Updates the metadata of an existing entry.
    case refresh(Int, UInt64)
    case remove(Int)
    /// Removes a revision that was never stored, so nothing.
    case removeOther(Int)
    case read(Int)
    case removeAll
  }

  /// The number of keys, enough for the store to write an index file.
  static let keys = 640

  private var generator: SplitMix
  private var number: UInt64

  init(seed: UInt64, round: Int) {
    generator = SplitMix(state: seed &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(round))
    number = UInt64(round) << 20
  }

  /// Returns operations to run concurrently, each on another key. The next batch begins when all are done.
  mutating func batch() -> [Operation] {
    if Int.random(in: 0..<600, using: &generator) == 0 { return [.removeAll] }
    var keys: Set<Int> = []
    for _ in 0..<Int.random(in: 1...4, using: &generator) { keys.insert(Int.random(in: 0..<Self.keys, using: &generator)) }
    return keys.sorted().map { operation($0) }
  }

  private mutating func operation(_ key: Int) -> Operation {
    number += 1
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<55: return .store(key, Value(number: number, length: Value.length(&generator)))
    case 55..<75: return .refresh(key, number)
    case 75..<83: return .remove(key)
    case 83..<86: return .removeOther(key)
    default: return .read(key)
    }
  }

  /// Returns the durability of a round.
  static func durability(_ round: Int) -> DiskCache.Durability { [.none, .none, .none, .file, .fileAndFolder][round % 5] }

  /// Returns whether the round's size limit is so low that entries are evicted all the time.
  static func evicts(_ round: Int) -> Bool { round % 20 == 19 }
}
