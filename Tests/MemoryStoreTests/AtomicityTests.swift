import CacheCore
import CacheTesting
import Foundation
import MemoryStore
import Testing

@Suite("An insertion that needs another shard's room")
struct AtomicityTests {
  /// What a second thread does to the key meanwhile.
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

  /// First in, first out; tells before somebody leaves, inside the store's critical section.
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

  /// A second thread, which changes a key and remembers what it found there.
  private final class Intruder: Sendable {
    private struct State {
      var task: (@Sendable () -> String?)?
      var isDone = false
      var found: String?
    }

    private let state = Lock(State())

    func prepare(_ task: @escaping @Sendable () -> String?) { state.withLock { $0.task = task } }

    var isDone: Bool { state.withLock { $0.isDone } }
    var found: String? { state.withLock { $0.found } }

    /// Starts, once, and leaves the thread time to finish if nothing is in its way.
    func intrude() {
      guard let task = state.withLock({ $0.task.take() }) else { return }
      Thread.detachNewThread {
        let found = task()
        self.state.withLock { ($0.found, $0.isDone) = (found, true) }
      }
      for _ in 0..<100_000 where !isDone {}
    }
  }

  @Test(
    "is one step: who changes the key meanwhile finds the newcomer, and has the last word", arguments: Change.allCases,
    [false, true])
  func nobodyComesBetween(_ change: Change, _ isUpdate: Bool) async throws {
    // Given: all the room is another shard's.
    let intruder = Intruder()
    let cache = MemoryCache(limits: .init(count: 1), eviction: Watched { intruder.intrude() }, clock: ManualClock(), shards: 2)
    let keys = (0..<100).map { key("\($0)") }
    let resident = try #require(keys.first { ($0.fingerprint >> 48) & 1 == 0 })
    let contested = try #require(keys.first { ($0.fingerprint >> 48) & 1 == 1 })
    cache.insert(entry("resident"), for: resident)
    intruder.prepare {
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
    try await Turns.until { intruder.isDone }

    // Then
    #expect(isTaken)
    #expect(intruder.found == "newcomer")
    #expect(cache.entry(for: contested)?.value(as: String.self) == change.left)
    #expect(cache.entry(for: resident) == nil)
    #expect(cache.count == (change == .remove ? 0 : 1))
  }
}
