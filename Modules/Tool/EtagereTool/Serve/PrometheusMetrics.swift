#if Tool && Service
import Etagere
import Foundation
import HTTPTypes
import Metrics

/// A backend of swift-metrics that writes the text format of Prometheus, version 0.0.4.
///
/// Timers are histograms in seconds. Labels come from code and not from requests, so their number is limited.
final class PrometheusMetrics: MetricsFactory {
  private struct Series: Hashable {
    var name: String
    var labels: String
  }

  private struct State {
    var counters: [Series: Counting] = [:]
    var meters: [Series: Metering] = [:]
    var timers: [Series: Timing] = [:]
  }

  private let state = Lock(State())

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    handler(\.counters, label, dimensions) { Counting() }
  }

  func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    handler(\.meters, label, dimensions) { Metering() }
  }

  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    handler(\.timers, label, dimensions) { Timing() }
  }

  /// Records its last value, because no part of the program uses histograms of other numbers.
  func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    handler(\.meters, label, dimensions) { Metering() }
  }

  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyMeter(_ handler: any MeterHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
  func destroyRecorder(_ handler: any RecorderHandler) {}

  private func handler<Handler: AnyObject & Sendable>(
    _ handlers: any WritableKeyPath<State, [Series: Handler]> & Sendable, _ label: String, _ dimensions: [(String, String)],
    _ make: () -> Handler
  ) -> Handler {
    let series = Series(name: Self.name(label), labels: Self.labels(dimensions))
    return state.withLock { state in
      if let handler = state[keyPath: handlers][series] { return handler }
      let handler = make()
      state[keyPath: handlers][series] = handler
      return handler
    }
  }

  /// Returns the metrics as text.
  ///
  /// - Parameters:
  ///   - gauges: The current values of additional gauges, by metric name.
  ///   - counts: The current values of additional counters, by metric name.
  func text(gauges: [String: Int] = [:], counts: [String: Int] = [:]) -> String {
    let (counters, meters, timers) = state.withLock { ($0.counters, $0.meters, $0.timers) }
    var text = ""
    for (kind, values) in [("gauge", gauges), ("counter", counts)] {
      for (name, value) in values.sorted(by: { $0.key < $1.key }) { text += "# TYPE \(name) \(kind)\n\(name) \(value)\n" }
    }
    func write<Handler>(_ handlers: [Series: Handler], _ kind: String, _ lines: (Series, Handler) -> String) {
      let names = Dictionary(grouping: handlers) { $0.key.name }
      for (name, handlers) in names.sorted(by: { $0.key < $1.key }) {
        text += "# TYPE \(name) \(kind)\n"
        for (series, handler) in handlers.sorted(by: { $0.key.labels < $1.key.labels }) { text += lines(series, handler) }
      }
    }
    write(counters, "counter") { series, counter in "\(series.name)\(Self.braced(series.labels)) \(counter.value)\n" }
    write(meters, "gauge") { series, meter in "\(series.name)\(Self.braced(series.labels)) \(meter.value)\n" }
    write(timers, "histogram") { series, timer in timer.lines(series.name, series.labels) }
    return text
  }

  private static func braced(_ labels: String) -> String { labels.isEmpty ? "" : "{\(labels)}" }

  /// Returns a name with the characters that Prometheus allows.
  private static func name(_ label: String) -> String {
    String(label.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") ? $0 : "_" })
  }

  private static func labels(_ dimensions: [(String, String)]) -> String {
    dimensions.map { name, value in
      let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
      return "\(self.name(name))=\"\(escaped)\""
    }.joined(separator: ",")
  }
}

private final class Counting: CounterHandler {
  private let count = Lock<Int64>(0)

  var value: Int64 { count.withLock { $0 } }

  func increment(by amount: Int64) { count.withLock { $0 &+= amount } }
  func reset() { count.withLock { $0 = 0 } }
}

private final class Metering: MeterHandler, RecorderHandler {
  private let number = Lock(0.0)

  var value: Double { number.withLock { $0 } }

  func set(_ value: Int64) { set(Double(value)) }
  func set(_ value: Double) { number.withLock { $0 = value } }
  func increment(by amount: Double) { number.withLock { $0 += amount } }
  func decrement(by amount: Double) { number.withLock { $0 -= amount } }
  func record(_ value: Int64) { set(Double(value)) }
  func record(_ value: Double) { set(value) }
}

private final class Timing: TimerHandler {
  /// The upper bounds of the histogram, in seconds.
  private static let bounds = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

  private struct State {
    var counts = [Int](repeating: 0, count: Timing.bounds.count + 1)
    var sum = 0.0
  }

  private let state = Lock(State())

  func recordNanoseconds(_ duration: Int64) {
    let seconds = Double(duration) / 1e9
    let index = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
    state.withLock {
      $0.counts[index] += 1
      $0.sum += seconds
    }
  }

  func lines(_ name: String, _ labels: String) -> String {
    let state = state.withLock { $0 }
    let start = labels.isEmpty ? "" : "\(labels),"
    var (text, count) = ("", 0)
    for (bound, amount) in zip(Self.bounds.map { "\($0)" } + ["+Inf"], state.counts) {
      count += amount
      text += "\(name)_bucket{\(start)le=\"\(bound)\"} \(count)\n"
    }
    let braced = labels.isEmpty ? "" : "{\(labels)}"
    return text + "\(name)_sum\(braced) \(state.sum)\n\(name)_count\(braced) \(count)\n"
  }
}

/// A recorder that counts requests and measures their time, by route and status.
struct RequestMetrics: Sendable {
  let factory: PrometheusMetrics

  /// Records a response, with the time from the head of its request to its end.
  func record(route: String, status: String, _ duration: Duration) {
    Timer(
      label: "http_request_duration_seconds", dimensions: [("route", route), ("status", status)], factory: factory
    ).recordNanoseconds(Int64(duration / .nanoseconds(1)))
  }
}
#endif
