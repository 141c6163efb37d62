package import CacheCore

/// The open intervals of loads, transfers and views, which begin and end with events. It is generic over the system's
/// intervals, so that Linux can test what Instruments shows.
package final class IntervalTable<Interval: Sendable>: Sendable {
  /// The kind of an interval.
  package enum Kind: Hashable, Sendable { case load, transfer, view }

  private struct Key: Hashable {
    var kind: Kind
    /// The load or the wait of the view, or `nil` for a transfer.
    var load: LoadID?
    /// The number of the transfer.
    var transfer = 0
  }

  private let begin: @Sendable (Kind, LoadURL) -> Interval?
  private let end: @Sendable (Kind, Interval, _ outcome: String) -> Void
  private let open = Lock<[Key: Interval]>([:])

  /// - Parameters:
  ///   - begin: A closure that begins an interval, or returns `nil` if the system does not record now.
  ///   - end: A closure that ends an interval.
  package init(
    begin: @escaping @Sendable (Kind, LoadURL) -> Interval?, end: @escaping @Sendable (Kind, Interval, String) -> Void
  ) {
    self.begin = begin
    self.end = end
  }

  /// The number of open intervals.
  package var count: Int { open.withLock { $0.count } }

  package func receive(_ event: CacheEvent, _ load: LoadID) {
    switch event {
    case .started(let url): begin(.load, url, Key(kind: .load, load: load))
    case .requestSent(let url, _, _, let number): begin(.transfer, url, Key(kind: .transfer, transfer: number))
    case .transferEnded(_, let metrics, let error, let number):
      end(Key(kind: .transfer, transfer: number), error?.code.rawValue ?? "\(metrics.bytesOnWire) bytes")
    case .finished(_, let source, let fallbackReason, let error, _):
      let stale = fallbackReason.map { "stale: \($0.code.rawValue)" }
      end(Key(kind: .load, load: load), stale ?? source?.rawValue ?? error?.code.rawValue ?? "")
    case .hit, .joined, .responseReceived, .stored, .transformed, .storeFailed, .readFailed, .revalidated, .backgroundFailed,
      .workEnded:
      break
    }
  }

  /// Receives the start of a view's wait, without a result, or its end.
  package func receive(_ wait: LoadID, _ url: LoadURL, _ result: Result<ResourceSource, CacheError>?) {
    let key = Key(kind: .view, load: wait)
    switch result {
    case nil: begin(.view, url, key)
    case .success(let source)?: end(key, source.rawValue)
    case .failure(let error)?: end(key, error.code.rawValue)
    }
  }

  private func begin(_ kind: Kind, _ url: LoadURL, _ key: Key) {
    guard let interval = begin(kind, url) else { return }
    open.withLock { $0[key] = interval }
  }

  private func end(_ key: Key, _ outcome: String) {
    let interval = open.withLock { $0.removeValue(forKey: key) }
    if let interval { end(key.kind, interval, outcome) }
  }
}

#if canImport(os)
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
