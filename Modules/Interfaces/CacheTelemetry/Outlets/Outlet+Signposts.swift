#if canImport(os)
internal import CacheCore
public import os

extension Telemetry.Outlet {
  /// Emits signposts for Instruments: an interval `Load` for each load, an interval `Transfer` for each request to the
  /// origin, an event `Hit` for each load that a store satisfies without waiting, and an interval `View` for each view that
  /// appears without its image, until it shows the image.
  ///
  /// - Parameter signposter: The signposter.
  public static func signposts(_ signposter: OSSignposter = OSSignposter(subsystem: "Etagere", category: "Loads")) -> Self {
    let intervals = IntervalTable<OSSignpostIntervalState>(
      begin: { kind, url in
        // The text of the URL is created only while Instruments records.
        guard signposter.isEnabled else { return nil }
        let id = signposter.makeSignpostID()
        return switch kind {
        case .load: signposter.beginInterval("Load", id: id, "\(url.withoutQuery, privacy: .public)")
        case .transfer: signposter.beginInterval("Transfer", id: id, "\(url.withoutQuery, privacy: .public)")
        case .view: signposter.beginInterval("View", id: id, "\(url.withoutQuery, privacy: .public)")
        }
      },
      end: { kind, interval, outcome in
        switch kind {
        case .load: signposter.endInterval("Load", interval, "\(outcome, privacy: .public)")
        case .transfer: signposter.endInterval("Transfer", interval, "\(outcome, privacy: .public)")
        case .view: signposter.endInterval("View", interval, "\(outcome, privacy: .public)")
        }
      })
    return Self(
      event: { event, load in
        if case .hit(let url, _, _) = event, signposter.isEnabled {
          signposter.emitEvent("Hit", "\(url.withoutQuery, privacy: .public)")
        }
        intervals.receive(event, load)
      },
      waits: { wait, url, result in intervals.receive(wait, url, result) })
  }
}
#endif
