import CacheCore
import CacheTesting
import Testing

@testable import MemoryStore

@Suite("The clock of a memory cache")
struct ClockTests {
  /// The calls that read the clock.
  enum Call: CaseIterable, Sendable { case hit, slidingHit, expiredEntry, insertion, update, replacement, keys, sweep }

  /// A clock that calls a closure whenever its time is read.
  private final class ObservedClock: CacheClock {
    private let base = ManualClock()
    private let onRead = Lock<(@Sendable () -> Void)?>(nil)

    var now: Timestamp {
      onRead.withLock { $0 }?()
      return base.now
    }

    var uptime: Duration { base.uptime }

    func sleep(for duration: Duration) async throws(CancellationError) { try await base.sleep(for: duration) }

    func advance(by duration: Duration) { base.advance(by: duration) }

    func onRead(_ action: @escaping @Sendable () -> Void) { onRead.withLock { $0 = action } }
  }

  @Test("the clock is read outside the locks, because it is user code that may call the cache", arguments: Call.allCases)
  func reads(_ call: Call) {
    let clock = ObservedClock()
    let ttl = TTLPolicy(clock: clock, usual: .after(.seconds(60)), slidesOnRead: call == .slidingHit)
    let storage = ShardedStorage(LeastRecentlyUsed(), MemoryCache.Limits(cost: 1_000), ttl, shards: 1)
    #expect(storage.insert(entry("a"), for: key("a")))
    if call == .expiredEntry { clock.advance(by: .seconds(60)) }
    let reads = Lock((free: 0, locked: 0))
    clock.onRead { [weak storage] in
      let isFree = storage?.withShardIfFree(0) { _ in true } ?? false
      reads.withLock { if isFree { $0.free += 1 } else { $0.locked += 1 } }
    }

    switch call {
    case .hit, .slidingHit: #expect(storage.entry(for: key("a"))?.value(as: String.self) == "a")
    case .expiredEntry: #expect(storage.entry(for: key("a")) == nil)
    case .insertion: #expect(storage.insert(entry("b"), for: key("b")))
    case .update: #expect(!storage.update(key("a")) { $0 == nil ? .remove : .keep })
    case .replacement: #expect(storage.update(key("a")) { _ in .replace(entry("b")) })
    case .keys: #expect(storage.keys() == [key("a")])
    case .sweep: storage.removeExpired()
    }

    #expect(reads.withLock { $0.free } == 1 && reads.withLock { $0.locked } == 0)
  }
}
