#if Gateway
import NIOConcurrencyHelpers

/// Is told of every answer: counts it, and logs it where a log is kept.
final class Traffic: Sendable {
  private let counts = NIOLockedValueBox(TrafficCounts())
  private let log: AccessLog?

  init(log: AccessLog? = nil) { self.log = log }

  /// Everything since the start.
  var total: TrafficCounts { counts.withLockedValue { $0 } }

  func record(_ record: TrafficRecord) {
    counts.withLockedValue { $0.add(record) }
    log?.write(record)
  }
}
#endif
