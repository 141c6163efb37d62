#if Metrics
public import CacheCore
public import Metrics

extension Telemetry.Outlet {
  /// Reports to the counters, timers and meters of a swift-metrics backend, which are listed in
  /// [CacheTelemetry](doc:/CacheTelemetry).
  ///
  /// ```swift
  /// let memory = MemoryCache()
  /// let telemetry = Telemetry([.metrics(evictions: ["memory": { memory.counters.evictions }])])
  /// ```
  ///
  /// - Parameters:
  ///   - factory: The backend, or `nil` for the one with which the metrics system was bootstrapped. Without a backend,
  ///     the outlet receives nothing.
  ///   - evictions: The eviction counters of stores, by name. They are read when all work of a load has ended.
  ///     Evictions before the creation of the outlet are not counted.
  public static func metrics(
    factory: (any MetricsFactory)? = nil, evictions: [String: @Sendable () -> [EvictionReason: Int]] = [:]
  ) -> Self {
    let factory = factory ?? MetricsSystem.factory
    guard !(factory is NOOPMetricsHandler) else { return Self() }
    let metrics = LoadMetrics(factory, evictions)
    return Self(event: { event, load in metrics.receive(event, load) })
  }
}

/// The metrics of all loads.
private final class LoadMetrics: Sendable {
  private struct State {
    /// The loads that have started but have not sent a request yet.
    var waiting: Set<LoadID> = []
    /// The evictions that have been counted.
    var evictions: [String: [EvictionReason: Int]] = [:]
  }

  /// The metrics of the loads from one source.
  private final class SourceMetrics: Sendable {
    let loads: Counter
    let duration: Timer

    init(_ source: String, _ factory: any MetricsFactory) {
      loads = Counter(label: "etagere_loads", dimensions: [("source", source)], factory: factory)
      duration = Timer(label: "etagere_load_duration", dimensions: [("source", source)], factory: factory)
    }

    func record(_ time: Duration) {
      loads.increment()
      duration.recordNanoseconds(time.saturatedNanoseconds)
    }
  }

  private let factory: any MetricsFactory
  private let evictions: [String: @Sendable () -> [EvictionReason: Int]]
  private let state: Lock<State>
  // Properties instead of a dictionary: a lookup would cost a memory hit as much as the counting.
  private let memory, disk, revalidated, network, schemeHandler, stale: SourceMetrics
  private let joined, cancelled, receivedBytes: Counter
  private let waiting, running, transferring: Meter
  private let queue, timeToHead, transfer, transform, commit: Timer

  init(_ factory: any MetricsFactory, _ evictions: [String: @Sendable () -> [EvictionReason: Int]]) {
    self.factory = factory
    self.evictions = evictions
    state = Lock(State(evictions: evictions.mapValues { $0() }))
    func source(_ source: ResourceSource) -> SourceMetrics { SourceMetrics(source.rawValue, factory) }
    (memory, disk, revalidated) = (source(.memory), source(.disk), source(.revalidated))
    (network, schemeHandler) = (source(.network), source(.schemeHandler))
    // A stale response hides a failure of the origin, so it is not a hit.
    stale = SourceMetrics("stale", factory)
    func counter(_ name: String) -> Counter { Counter(label: "etagere_\(name)", factory: factory) }
    func meter(_ name: String) -> Meter { Meter(label: "etagere_\(name)", factory: factory) }
    func timer(_ name: String) -> Timer { Timer(label: "etagere_\(name)", dimensions: [], factory: factory) }
    (joined, cancelled, receivedBytes) = (counter("joined_loads"), counter("cancelled_loads"), counter("received_bytes"))
    (waiting, running, transferring) = (meter("waiting_loads"), meter("running_loads"), meter("running_transfers"))
    (queue, timeToHead, transfer) = (timer("queue_duration"), timer("time_to_head"), timer("transfer_duration"))
    (transform, commit) = (timer("transform_duration"), timer("commit_duration"))
  }

  func receive(_ event: CacheEvent, _ load: LoadID) {
    switch event {
    case .hit(_, let source, let duration): metrics(of: source).record(duration)
    case .started:
      running.increment()
      state.withLock { _ = $0.waiting.insert(load) }
      waiting.increment()
    case .joined:
      joined.increment()
      endWaiting(load)
    case .requestSent(_, _, let isConditional, _):
      count("requests", ("conditional", isConditional ? "true" : "false"))
      transferring.increment()
      endWaiting(load)
    case .responseReceived(_, let status, _): count("responses", ("status", "\(status / 100)xx"))
    case .transferEnded(_, let metrics, _, _):
      transferring.decrement()
      receivedBytes.increment(by: metrics.bytesOnWire)
      Self.record(metrics.queued, in: queue)
      Self.record(metrics.timeToHead, in: timeToHead)
      Self.record(metrics.total, in: transfer)
    case .stored(_, let layer, let bytes, let duration): stored(in: layer, bytes, duration)
    case .transformed(_, let origin, let duration): if origin != .memory { Self.record(duration, in: transform) }
    case .storeFailed(_, let error): count("store_failures", ("operation", "write"), ("code", error.code.rawValue))
    case .readFailed(_, let error): count("store_failures", ("operation", "read"), ("code", error.code.rawValue))
    case .revalidated: break
    case .backgroundFailed(_, let error): count("failed_revalidations", ("code", error.code.rawValue))
    case .finished(_, let source, let fallbackReason, let error, let duration):
      running.decrement()
      endWaiting(load)
      if let fallbackReason {
        stale.record(duration)
        count("stale_loads", ("reason", fallbackReason.code.rawValue))
      } else if let source {
        metrics(of: source).record(duration)
      }
      if let error { error.isCancellation ? cancelled.increment() : count("failed_loads", ("code", error.code.rawValue)) }
    // By now, the load has finished all writes that can evict entries. A hit writes nothing.
    case .workEnded: countEvictions()
    }
  }

  private func metrics(of source: ResourceSource) -> SourceMetrics {
    switch source {
    case .memory: memory
    case .disk: disk
    case .revalidated: revalidated
    case .network: network
    case .schemeHandler: schemeHandler
    }
  }

  private func endWaiting(_ load: LoadID) {
    if state.withLock({ $0.waiting.remove(load) }) != nil { waiting.decrement() }
  }

  private static func record(_ duration: Duration?, in timer: Timer) {
    if let duration { timer.recordNanoseconds(duration.saturatedNanoseconds) }
  }

  /// Adds to a counter with dimensions. The backend finds the counter by label and dimensions.
  private func count(_ name: String, by amount: Int64 = 1, _ dimensions: (String, String)...) {
    Counter(label: "etagere_\(name)", dimensions: dimensions, factory: factory).increment(by: amount)
  }

  private func stored(in layer: CacheLayers, _ bytes: Int64, _ duration: Duration) {
    let isInMemory = layer == .memory
    count("stored_bytes", by: bytes, ("layer", isInMemory ? "memory" : "disk"))
    if !isInMemory { Self.record(duration, in: commit) }
  }

  private func countEvictions() {
    for (store, read) in evictions {
      let now = read()
      let new = state.withLock { state in
        let former = state.evictions[store] ?? [:]
        // Two threads may read the counters in one order and get here in the other.
        let latest = now.merging(former) { max($0, $1) }
        state.evictions[store] = latest
        return latest.compactMap { reason, count in
          count > former[reason] ?? 0 ? (reason, count - (former[reason] ?? 0)) : nil
        }
      }
      for (reason, count) in new { self.count("evictions", by: Int64(count), ("store", store), ("reason", reason.rawValue)) }
    }
  }
}
#endif
