import CacheCore
import CacheTesting
import MemoryStore

/// The kinds of repeated work on a memory store.
enum MemoryWork: String, Codable, Hashable, Sendable, CaseIterable {
  case hitWithReadyKey = "hit, ready key"
  case hitFromString = "hit, key from a string"
  case miss = "miss"
  case set = "insert, new"
  case setAnew = "insert, replacing"
  case setEvicting = "insert, evicting"
  case zipf = "Zipf 0.99, 95 reads to 5 inserts"

  /// The order in which keys are looked up or inserted.
  func order(seed: UInt64) -> [Int32] {
    var generator = SplitMix(state: seed)
    switch self {
    case .hitWithReadyKey, .hitFromString, .miss, .setAnew:
      return (0..<MemoryFixture.residents).map { Int32($0) }.shuffled(using: &generator)
    case .set: return (0..<MemoryFixture.capacity).map { Int32($0) }
    case .setEvicting: return (0..<MemoryFixture.objects).map { Int32($0) }
    case .zipf:
      var source = ZipfSource(objects: MemoryFixture.objects, exponent: 0.99, seed: seed)
      return (0..<MemoryFixture.objects).map { _ in Int32(source.next()) }
    }
  }
}

/// The keys and entries for the store and its peer.
struct MemoryFixture: Sendable {
  static let residents = 1_000
  static let capacity = 10_000
  static let objects = 100_000

  /// The keys of the stored entries, of 60 characters.
  let stored: [String]
  /// Equal strings in other memory, for lookups.
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

  /// Creates a store with the defaults for everything but its limits.
  func cache() -> MemoryCache { MemoryCache(limits: .init(cost: 512 << 20, count: Self.capacity)) }

  func dictionary() -> FIFODictionary { FIFODictionary(capacity: Self.capacity) }
}
