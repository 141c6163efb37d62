public import CacheCore

/// An observer that reports loads to a log, to metrics, to a tracer, to Instruments, or to a closure.
///
/// ```swift
/// configuration.observer = Telemetry([.logging(Logger(label: "images")), .metrics(), .tracing()])
/// ```
///
/// Bootstrap the metrics and tracing systems first. The initializer returns `nil` if no outlet has a receiver. The
/// manager then has no observer, and a hit costs the same as without telemetry.
///
/// In logs, spans and signposts, URLs have no user information and no query, which may contain signatures and tokens.
public final class Telemetry: LoadObserver {
  public let id = ComponentID.unique(Telemetry.self)
  /// Passes an event to every outlet that receives events. It is a single closure, because iterating over an array
  /// would slow down memory hits.
  private let receiver: (@Sendable (CacheEvent, LoadID) -> Void)?
  private let waitReceivers: [Outlet.Waits]
  private let recorder: LoadRecorder?

  /// Creates an observer with outlets, or returns `nil` if none of them has a receiver.
  ///
  /// - Parameters:
  ///   - outlets: The receivers of the reports.
  ///   - clock: The clock of the observed managers. With another clock, the times in records are wrong.
  public init?(_ outlets: [Outlet], clock: any CacheClock = SystemClock()) {
    let receivers = outlets.compactMap(\.event)
    receiver =
      receivers.count < 2
      ? receivers.first
      : { @Sendable event, load in
        for receive in receivers { receive(event, load) }
      }
    waitReceivers = outlets.compactMap(\.waits)
    let records = outlets.compactMap(\.records)
    recorder = records.isEmpty ? nil : LoadRecorder(records, clock: clock)
    if receivers.isEmpty, records.isEmpty { return nil }
  }

  /// Passes an event to the outlets. The manager calls this method.
  public func observe(_ event: CacheEvent, of load: LoadID) {
    receiver?(event, load)
    recorder?.receive(event, of: load)
  }

  /// Passes the start of a view's wait to the outlets. The view calls this method.
  public func viewWaits(_ wait: LoadID, for url: LoadURL) {
    for receive in waitReceivers { receive(wait, url, nil) }
  }

  /// Passes the end of a view's wait to the outlets. The view calls this method.
  public func viewEndsWait(
    _ wait: LoadID, for url: LoadURL, with result: Result<ResourceSource, CacheError>, after duration: Duration
  ) {
    for receive in waitReceivers { receive(wait, url, result) }
  }

  /// Returns when the records of all started loads have been delivered.
  package func idle() async { await recorder?.idle() }

  /// A receiver of reports: a log, metrics, a tracer, Instruments, or a closure.
  public struct Outlet: Sendable {
    /// The receiver of records and of the note that it made in the caller's task at the start of the load.
    struct Records: Sendable {
      var note: @Sendable () -> (any Sendable)? = { nil }
      /// Whether records of loads that a store satisfies without waiting are wanted now.
      var wantsHits: @Sendable () -> Bool = { true }
      var receive: @Sendable (LoadRecord, _ note: (any Sendable)?) -> Void
    }

    /// A closure that receives each event immediately, or `nil` if the outlet needs only records.
    var event: (@Sendable (CacheEvent, LoadID) -> Void)?
    /// A receiver of the start of a view's wait, without a result, and of its end.
    typealias Waits = @Sendable (_ wait: LoadID, _ url: LoadURL, _ result: Result<ResourceSource, CacheError>?) -> Void

    /// A closure that receives the waits of views immediately, or `nil` if the outlet does not need them.
    var waits: Waits?
    /// The receiver of records, or `nil` if the outlet needs only events.
    var records: Records?

    /// Passes the record of each load to a closure when all its work has ended. The closure is called on any thread and
    /// must return quickly. The outlet retains it.
    ///
    /// ```swift
    /// let telemetry = Telemetry([.records { record in print(record.url.withoutQuery, record.duration) }])
    /// ```
    public static func records(_ receive: @escaping @Sendable (LoadRecord) -> Void) -> Outlet {
      Outlet(records: Records { record, _ in receive(record) })
    }
  }
}
