import CacheCore

/// The machine's clock, moved forward on demand. Cached responses become stale without waiting.
final class ShiftedClock: CacheClock {
  private let base = SystemClock()
  private let shift = Locked(Duration.zero)

  var now: Timestamp { base.now + shift.withLock { $0 } }

  var uptime: Duration { base.uptime }

  func sleep(for duration: Duration) async throws(CancellationError) { try await base.sleep(for: duration) }

  func advance(by duration: Duration) { shift.withLock { $0 += duration } }
}
