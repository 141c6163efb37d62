public import CacheCore

/// An observer that reports what loads do: to a log, to metrics, to a tracer, to Instruments, or to a closure.
///
/// ```swift
/// configuration.observer = Telemetry([.logging(Logger(label: "images")), .metrics(), .tracing()])
/// ```
///
/// Bootstrap the metrics and the tracing system first. The initializer returns `nil` if nothing would receive a report. The
/// manager then has no observer, and a hit costs the same as without telemetry.
///
/// Logs, spans and signposts have URLs without user information and without query, which may hold signatures and tokens.
public final class Telemetry: LoadObserver {
  public let id = ComponentID.unique(Telemetry.self)
  /// Passes an event on to every outlet that receives events. One closure, because iterating over an array would slow a hit in
  /// memory down.
  private let receiver: (@Sendable (CacheEvent, LoadID) -> Void)?
  private let recorder: LoadRecorder?

  /// Creates an observer with some outlets, or returns `nil` if none of them has a receiver.
  ///
  /// - Parameters:
  ///   - outlets: The receivers of the reports.
  ///   - clock: The clock of the managers that are observed. With another clock, the times of records are wrong.
  public init?(_ outlets: [Outlet], clock: any CacheClock = SystemClock()) {
    let receivers = outlets.compactMap(\.event)
    receiver =
      receivers.count < 2
      ? receivers.first
      : { @Sendable event, load in
        for receive in receivers { receive(event, load) }
      }
    let records = outlets.compactMap(\.records)
    recorder = records.isEmpty ? nil : LoadRecorder(records, clock: clock)
    if receivers.isEmpty, records.isEmpty { return nil }
  }

  /// Passes an event on to the outlets. Called by the manager.
  public func observe(_ event: CacheEvent, of load: LoadID) {
    receiver?(event, load)
    recorder?.receive(event, of: load)
  }

  /// Returns when the record of every load that has started was delivered.
  package func idle() async { await recorder?.idle() }

  /// A receiver of reports: a log, metrics, a tracer, Instruments, or a closure.
  public struct Outlet: Sendable {
    /// The receiver of records, and of what it noted in the caller's task when the load started.
    struct Records: Sendable {
      var note: @Sendable () -> (any Sendable)? = { nil }
      /// Whether loads that a store answers without waiting are of interest now.
      var wantsHits: @Sendable () -> Bool = { true }
      var receive: @Sendable (LoadRecord, _ note: (any Sendable)?) -> Void
    }

    /// Receives each event at once, or `nil` if the outlet needs records alone.
    var event: (@Sendable (CacheEvent, LoadID) -> Void)?
    /// Receives the record of each load, or `nil` if the outlet needs events alone.
    var records: Records?

    /// A closure that receives the record of each load when all its work has ended. It is called on any thread, and must return
    /// quickly.
    ///
    /// ```swift
    /// let telemetry = Telemetry([.records { record in print(record.url.withoutQuery, record.duration) }])
    /// ```
    public static func records(_ receive: @escaping @Sendable (LoadRecord) -> Void) -> Outlet {
      Outlet(records: Records { record, _ in receive(record) })
    }
  }
}
