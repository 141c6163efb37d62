import CacheCore
import CacheTesting
import MemoryStore
import Testing

@Suite("A value that leaves a memory cache")
struct ReleaseTests {
  /// The ways in which an entry leaves.
  enum Exit: String, CaseIterable, CustomTestStringConvertible {
    case replaced, refusedAnew, cost, count, removed, removedAll, expired, swept, trimmed, cacheReleased
    var testDescription: String { rawValue }
  }

  /// An object that calls a closure when it is deallocated.
  final class ReleaseObserver: Sendable {
    let onRelease: @Sendable () -> Void
    init(_ onRelease: @escaping @Sendable () -> Void) { self.onRelease = onRelease }
    deinit { onRelease() }
  }

  private static func leave(_ cache: MemoryCache, _ clock: ManualClock, _ exit: Exit) {
    switch exit {
    case .replaced: cache.insert(entry(cost: 1), for: key("told"))
    case .refusedAnew: cache.insert(entry(cost: 1_000), for: key("told"))
    case .cost: cache.insert(entry(cost: 10), for: key("other"))
    case .count: for name in ["b", "c"] { cache.insert(entry(cost: 0), for: key(name)) }
    case .removed: cache.remove(key("told"))
    case .removedAll: cache.removeAll()
    case .expired:
      clock.advance(by: .seconds(1))
      _ = cache.entry(for: key("told"))
    case .swept:
      clock.advance(by: .seconds(1))
      cache.removeExpired()
    case .trimmed: cache.trim(to: 0)
    case .cacheReleased: break
    }
  }

  @Test(
    "a value is released outside the lock, so its deinit may use the cache", .timeLimit(.minutes(30)), arguments: Exit.allCases)
  func deinitCallsBack(_ exit: Exit) {
    // Given: a value that reads from the cache and stores into it when it is deallocated.
    let clock = ManualClock()
    let releases = Lock(0)
    var cache: MemoryCache? = MemoryCache(limits: .init(cost: 10, count: 2, entryCost: 10), clock: clock)
    cache?.insert(
      entry(
        ReleaseObserver { [weak cache] in
          releases.withLock { $0 += 1 }
          cache?.insert(entry("last words", cost: 0), for: key("words"))
          _ = cache?.entry(for: key("told"))
          _ = cache?.totalCost
        }, cost: 5, expiration: .after(.seconds(1))), for: key("told"))

    // When
    if let cache { Self.leave(cache, clock, exit) }
    if exit == .cacheReleased { cache = nil }

    // Then
    #expect(releases.withLock { $0 } == 1)
    if let cache {
      #expect(cache.text("words") == "last words")
      #expect(cache.totalCost <= 10 && cache.count <= 2)
    }
  }

  @Test("a value stays valid as long as a caller holds it, and no longer", arguments: Exit.allCases)
  func heldValuesStay(_ exit: Exit) throws {
    // Given
    let clock = ManualClock()
    let releases = Lock(0)
    var cache: MemoryCache? = MemoryCache(limits: .init(cost: 10, count: 2, entryCost: 10), clock: clock)
    cache?.insert(
      entry(ReleaseObserver { releases.withLock { $0 += 1 } }, cost: 5, expiration: .after(.seconds(1))), for: key("told"))
    var held = cache?.entry(for: key("told"))

    // When
    if let cache { Self.leave(cache, clock, exit) }
    if exit == .cacheReleased { cache = nil }

    // Then
    #expect(releases.withLock { $0 } == 0)
    #expect(held?.value(as: ReleaseObserver.self) != nil)
    held = nil
    #expect(releases.withLock { $0 } == 1)
    withExtendedLifetime(cache) {}
  }
}
