import NIOConcurrencyHelpers

/// A recorder that counts every response, and writes it to the access log if there is one.
final class Traffic: Sendable {
  private let counts = NIOLockedValueBox(TrafficCounts())
  private let log: AccessLog?

  init(log: AccessLog? = nil) { self.log = log }

  /// The counts since the start.
  var total: TrafficCounts { counts.withLockedValue { $0 } }

  func record(_ record: TrafficRecord) {
    counts.withLockedValue { $0.add(record) }
    log?.write(record)
  }
}
