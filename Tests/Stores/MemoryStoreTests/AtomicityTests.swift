import CacheCore
import CacheTesting
import Foundation
import MemoryStore
import Testing

@Suite("An insertion that needs another shard's space")
struct AtomicityTests {
  /// A change that a second thread makes to the key during the insertion.
  enum Change: String, CaseIterable {
    case keep, remove, replace

    var update: MemoryUpdate {
      switch self {
      case .keep: .keep
      case .remove: .remove
      case .replace: .replace(entry("newer"))
      }
    }

    var left: String? {
      switch self {
      case .keep: "newcomer"
      case .remove: nil
      case .replace: "newer"
      }
    }
  }

  /// A first-in, first-out policy that calls a closure before each eviction, inside the store's critical section.
  private struct Watched: EvictionPolicy {
    private var order = FirstInFirstOut()
    private let onEviction: @Sendable () -> Void

    init(onEviction: @escaping @Sendable () -> Void) { self.onEviction = onEviction }

    mutating func insert(_ slot: Int, fingerprint: Int, cost: Int) { order.insert(slot, fingerprint: fingerprint, cost: cost) }
    mutating func access(_ slot: Int) {}
    mutating func remove(_ slot: Int) { order.remove(slot) }
    mutating func evict(toFit cost: Int) -> Int? {
      guard let slot = order.evict(toFit: cost) else { return nil }
      onEviction()
      return slot
    }
  }

  /// A second thread that changes a key and records the entry that it found.
  private final class ConcurrentChange: Sendable {
    private struct State {
      var task: (@Sendable () -> String?)?
      var isDone = false
      var found: String?
    }

    private let state = Lock(State())

    func prepare(_ task: @escaping @Sendable () -> String?) { state.withLock { $0.task = task } }

    var isDone: Bool { state.withLock { $0.isDone } }
    var found: String? { state.withLock { $0.found } }

    /// Starts the thread once, and gives it time to finish if nothing blocks it.
    func run() {
      guard let task = state.withLock({ $0.task.take() }) else { return }
      Thread.detachNewThread {
        let found = task()
        self.state.withLock { ($0.found, $0.isDone) = (found, true) }
      }
      for _ in 0..<100_000 where !isDone {}
    }
  }

  @Test(
    "an insertion is one step: a concurrent change of the key finds the new entry and applies after it",
    arguments: Change.allCases,
    [false, true])
  func insertionIsOneStep(_ change: Change, _ isUpdate: Bool) async throws {
    // Given: another shard owns all space.
    let concurrent = ConcurrentChange()
    let cache = MemoryCache(limits: .init(count: 1), eviction: Watched { concurrent.run() }, clock: ManualClock(), shards: 2)
    let keys = (0..<100).map { key("\($0)") }
    let resident = try #require(keys.first { ($0.fingerprint >> 48) & 1 == 0 })
    let contested = try #require(keys.first { ($0.fingerprint >> 48) & 1 == 1 })
    cache.insert(entry("resident"), for: resident)
    concurrent.prepare {
      var found: String?
      cache.update(contested) {
        found = $0?.value(as: String.self)
        return change.update
      }
      return found
    }

    // When
    let isTaken =
      isUpdate
      ? cache.update(contested) { _ in .replace(entry("newcomer")) }
      : cache.insert(entry("newcomer"), for: contested)
    try await Polling.until { concurrent.isDone }

    // Then
    #expect(isTaken)
    #expect(concurrent.found == "newcomer")
    #expect(cache.entry(for: contested)?.value(as: String.self) == change.left)
    #expect(cache.entry(for: resident) == nil)
    #expect(cache.count == (change == .remove ? 0 : 1))
  }
}
