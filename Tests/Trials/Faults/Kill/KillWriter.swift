import CacheCore
import DiskStore
import Foundation

/// The process that is killed. It changes the folder according to its plan and reports each operation before it continues.
struct KillWriter {
  private let folder: String
  private let seed: UInt64
  private let round: Int
  private let limit: Int64?

  init(arguments: ArraySlice<String>) throws {
    let words = Array(arguments)
    guard words.count == 4, let seed = UInt64(words[1]), let round = Int(words[2]) else {
      throw FailedCheck("'kill' needs a folder, a seed, a round and a limit")
    }
    (folder, self.seed, self.round, limit) = (words[0], seed, round, Int64(words[3]))
  }

  func run() async throws {
    Children.tell("opening")
    let cache = try DiskCache(
      path: folder, configuration: .init(sizeLimit: limit, durability: KillPlan.durability(round)))
    Children.tell("open")
    var plan = KillPlan(seed: seed, round: round)
    var number = 0
    // Runs until it is killed or its output has no reader.
    while true {
      let batch = plan.batch()
      await withTaskGroup(of: Void.self) { [number] group in
        for (index, operation) in batch.enumerated() {
          group.addTask { await Self.carryOut(operation, number + index, cache) }
        }
      }
      number += batch.count
    }
  }

  private static func carryOut(_ operation: KillPlan.Operation, _ number: Int, _ cache: DiskCache) async {
    do {
      switch operation {
      case .store(let key, let value): try await store(value, Keys.key(key), cache)
      case .refresh(let key, let updateCount): try await refresh(Keys.key(key), updateCount, cache)
      case .remove(let key): try await cache.remove(Keys.key(key), ifRevision: nil)
      case .removeOther(let key): try await cache.remove(Keys.key(key), ifRevision: Revision(high: 0, low: 0))
      case .read(let key):
        if let entry = try await cache.entry(for: Keys.key(key)) { _ = try await Value(of: entry, for: Keys.key(key)) }
      case .removeAll: try await cache.removeAll()
      }
      Children.tell("\(number)")
    } catch {
      Children.tell("failed \(operation): \(error)")
    }
  }

  private static func store(_ value: Value, _ key: CacheKey, _ cache: DiskCache) async throws {
    let bytes = value.bytes
    guard value.length > 100_000 else {
      try await cache.store(bytes, for: key, metadata: value.metadata)
      return
    }
    let writer = try await cache.makeWriter(for: key, metadata: value.metadata)
    for start in stride(from: 0, to: bytes.count, by: 50_000) {
      try await writer.write(Data(bytes[start..<min(start + 50_000, bytes.count)]))
    }
    _ = try await writer.commit(trailers: nil)
  }

  private static func refresh(_ key: CacheKey, _ updateCount: UInt64, _ cache: DiskCache) async throws {
    guard let entry = try await cache.entry(for: key) else { return }
    var value = try await Value(of: entry, for: key)
    value.updateCount = updateCount
    _ = try await cache.updateMetadata(of: key, to: value.metadata, ifRevision: value.revision)
  }
}
