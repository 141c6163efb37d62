#if Demo
import CacheTelemetry
import Etagere

/// A load as bars on a time axis.
struct LoadTimeline {
  /// The part of a load that a bar stands for, in the order in which the parts of a transfer follow one another.
  enum Part: String, CaseIterable {
    case queue, dns, connect, tls
    case firstByte = "first-byte"
    case body, decode, store

    var title: String {
      switch self {
      case .dns: "DNS"
      case .tls: "TLS"
      case .firstByte: "first byte"
      case .queue, .connect, .body, .decode, .store: rawValue
      }
    }
  }

  struct Bar: Equatable {
    var part: Part
    /// The time from the start of the load.
    var start: Duration
    var duration: Duration

    var end: Duration { start + duration }
  }

  private(set) var bars: [Bar] = []
  /// The end of the load, or of its last bar if that is later.
  private(set) var end: Duration

  init(_ record: LoadRecord) {
    end = record.duration
    var isFirst = true
    for phase in record.phases {
      switch phase.work {
      case .transfer(let transfer):
        // Before its first request, a load waits for the stores, for memory or for its turn.
        if isFirst { bars.append(Bar(part: .queue, start: .zero, duration: phase.start)) }
        isFirst = false
        append(transfer.metrics, from: phase.start, to: phase.start + phase.duration)
      case .transform: bars.append(Bar(part: .decode, start: phase.start, duration: phase.duration))
      case .store: bars.append(Bar(part: .store, start: phase.start, duration: phase.duration))
      }
      end = max(end, phase.start + phase.duration)
    }
    bars.removeAll { $0.duration <= .zero }
  }

  /// Adds the parts of a transfer. Time that the engine does not measure is added to the next part.
  private mutating func append(_ metrics: TransferMetrics, from start: Duration, to end: Duration) {
    var at = start
    func remaining(_ duration: Duration?) -> Duration { max(.zero, min(duration ?? .zero, end - at)) }
    func add(_ part: Part, _ duration: Duration) {
      bars.append(Bar(part: part, start: at, duration: duration))
      at += duration
    }
    add(.queue, remaining(metrics.queued))
    // The time to the head includes the connection (see `TransferMetrics`).
    let head = at + remaining(metrics.timeToHead)
    add(.dns, remaining(metrics.nameLookup))
    add(.connect, remaining((metrics.connect ?? .zero) - (metrics.tls ?? .zero)))
    add(.tls, remaining(metrics.tls))
    add(.firstByte, max(.zero, head - at))
    add(.body, max(.zero, end - at))
  }

  /// The time that all bars of a part take.
  func total(_ part: Part) -> Duration { bars.reduce(.zero) { $1.part == part ? $0 + $1.duration : $0 } }
}

/// The color of a load: its source, or that it is stale because the origin failed, or that the load failed or was cancelled.
enum LoadColor: String, CaseIterable {
  case memory, disk, revalidated, network
  case schemeHandler = "scheme-handler"
  case stale, failed, cancelled

  init(_ record: LoadRecord) {
    guard record.fallbackReason == nil else {
      self = .stale
      return
    }
    self =
      switch record.source {
      case nil: record.error?.isCancellation == true ? .cancelled : .failed
      case .memory: .memory
      case .disk: .disk
      case .revalidated: .revalidated
      case .network: .network
      case .schemeHandler: .schemeHandler
      }
  }

  var title: String {
    switch self {
    case .revalidated: "revalidated (304)"
    case .schemeHandler: "no network"
    case .memory, .disk, .network, .stale, .failed, .cancelled: rawValue
    }
  }
}

/// The durations of loads in bins of 1, 2 and 5 times a power of ten, by color.
struct DurationHistogram {
  struct Bin {
    /// The upper bound of the bin, in microseconds, which is not part of it.
    var bound: Int
    var counts: [LoadColor: Int] = [:]

    var count: Int { counts.values.reduce(0, +) }
  }

  /// The bins from the first that is not empty to the last.
  let bins: [Bin]

  init(_ loads: [LoadRecord]) {
    var bins = Self.bounds.map { Bin(bound: $0) }
    for load in loads {
      let microseconds = load.duration / .microseconds(1)
      let index = bins.firstIndex { microseconds < Double($0.bound) } ?? bins.count - 1
      bins[index].counts[LoadColor(load), default: 0] += 1
    }
    let first = bins.firstIndex { $0.count > 0 } ?? 0
    let last = bins.lastIndex { $0.count > 0 } ?? 0
    self.bins = loads.isEmpty ? [] : Array(bins[first...last])
  }

  /// From 1 µs to 100 s. A longer load is in the last bin.
  private static let bounds =
    (0...7).flatMap { power in
      let unit = (0..<power).reduce(1) { unit, _ in unit * 10 }
      return [1, 2, 5].map { $0 * unit }
    } + [100_000_000]

  /// The bound as text: `50 µs`, `2 ms`, `1 s`.
  static func text(_ bound: Int) -> String {
    switch bound {
    case ..<1_000: "\(bound) µs"
    case ..<1_000_000: "\(bound / 1_000) ms"
    default: "\(bound / 1_000_000) s"
    }
  }
}
#endif
