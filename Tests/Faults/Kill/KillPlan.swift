import CacheTesting
import DiskStore

/// What a process does that is going to be killed, drawn from a seed: so the one that kills it knows what it was doing.
struct KillPlan {
  enum Operation: Sendable {
    case store(Int, Value)
    /// Freshens what is there.
    case refresh(Int, UInt64)
    case remove(Int)
    /// Removes a revision that nobody has stored: nothing.
    case removeOther(Int)
    case read(Int)
    case removeAll
  }

  /// How many keys there are: enough for the store to keep an index beside the files.
  static let keys = 640

  private var generator: SplitMix
  private var number: UInt64

  init(seed: UInt64, round: Int) {
    generator = SplitMix(state: seed &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(round))
    number = UInt64(round) << 20
  }

  /// What is done at once, each under a key of its own; the next batch begins when all of it is done.
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

  /// What a commit waits for, in this round.
  static func durability(_ round: Int) -> DiskCache.Durability { [.none, .none, .none, .file, .fileAndFolder][round % 5] }

  /// Whether the round's size limit is so low that entries are evicted all the time: then any of them may be gone.
  static func evicts(_ round: Int) -> Bool { round % 20 == 19 }
}
