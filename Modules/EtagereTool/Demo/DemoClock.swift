#if Tool
import Etagere

/// The system's clock with an offset, so that responses become stale without a wait.
final class DemoClock: CacheClock {
  private let base = SystemClock()
  private let ahead = Lock(Duration.zero)

  var now: Timestamp { base.now + ahead.withLock { $0 } }

  var uptime: Duration { base.uptime }

  func sleep(for duration: Duration) async throws(CancellationError) { try await base.sleep(for: duration) }

  func advance(by duration: Duration) { ahead.withLock { $0 += duration } }
}
#endif
