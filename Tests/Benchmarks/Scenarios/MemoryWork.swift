import CacheCore
import CacheTesting
import MemoryStore

/// What is done with a memory store, again and again.
enum MemoryWork: String, Codable, Hashable, Sendable, CaseIterable {
  case hitWithReadyKey = "hit, ready key"
  case hitFromString = "hit, from a string"
  case miss = "miss"
  case set = "set, new"
  case setAnew = "set, replaced"
  case setEvicting = "set, evicting"
  case zipf = "Zipf 0.99, 95/5"

  /// The keys that are looked for or stored, in this order.
  func order(seed: UInt64) -> [Int32] {
    var generator = SplitMix(state: seed)
    switch self {
    case .hitWithReadyKey, .hitFromString, .miss, .setAnew:
      return (0..<MemoryBed.residents).map { Int32($0) }.shuffled(using: &generator)
    case .set: return (0..<MemoryBed.capacity).map { Int32($0) }
    case .setEvicting: return (0..<MemoryBed.objects).map { Int32($0) }
    case .zipf:
      var source = ZipfSource(objects: MemoryBed.objects, exponent: 0.99, seed: seed)
      return (0..<MemoryBed.objects).map { _ in Int32(source.next()) }
    }
  }
}

/// Keys and entries: the same for both sides.
struct MemoryBed: Sendable {
  static let residents = 1_000
  static let capacity = 10_000
  static let objects = 100_000

  /// Of 60 characters; those that are asked with are equal to those that things were stored under, and lie elsewhere.
  let stored: [String]
  let asked: [String]
  let absent: [String]
  let keys: [CacheKey]
  let entries: [MemoryEntry]

  init(_ work: MemoryWork) {
    let count =
      switch work {
      case .hitWithReadyKey, .hitFromString, .miss, .setAnew: Self.residents
      case .set: Self.capacity
      case .setEvicting, .zipf: Self.objects
      }
    stored = (0..<count).map { Self.name("stored", $0) }
    asked = (0..<count).map { Self.name("stored", $0) }
    absent = work == .miss ? (0..<count).map { Self.name("absent", $0) } : []
    keys = stored.map { CacheKey(resource: $0) }
    entries = (0..<count).map { MemoryEntry($0, cost: 1_000, revision: Revision(high: 0, low: 1)) }
  }

  private static func name(_ kind: String, _ number: Int) -> String {
    let name = "https://images.example.com/\(kind)/products/\(number)/"
    return name + String(repeating: "x", count: 60 - name.utf8.count)
  }

  /// The store, as a program makes it: nothing is tuned for the measurement.
  func cache() -> MemoryCache { MemoryCache(limits: .init(cost: 512 << 20, count: Self.capacity)) }

  func dictionary() -> FIFODictionary { FIFODictionary(capacity: Self.capacity) }
}
