#if Logging
internal import CacheCore
public import Logging

extension Telemetry.Outlet {
  /// Logs one line per load, and one per failure that is not reported to a caller, with swift-log.
  ///
  /// A line contains the identifier of the load, its URL without query and user information, its source, its duration,
  /// and the durations of its phases in milliseconds. A stale response in place of one that the origin could not send is
  /// logged as `loaded stale`. Loads that a store satisfies without waiting are logged at the
  /// level `trace`. Failures of a store or of a background revalidation are logged as warnings.
  ///
  /// - Parameters:
  ///   - logger: The logger.
  ///   - level: The level of the lines for loads.
  public static func logging(_ logger: Logger, level: Logger.Level = .debug) -> Self {
    Self(
      event: { event, load in warn(logger, event, load) },
      records: Records(wantsHits: { logger.logLevel <= .trace }) { record, _ in
        let level = record.isHit ? .trace : level
        guard logger.logLevel <= level else { return }
        logger.log(level: level, "\(record.title)", metadata: record.logMetadata)
      })
  }

  private static func warn(_ logger: Logger, _ event: CacheEvent, _ load: LoadID) {
    func warn(_ message: Logger.Message, _ error: CacheError) {
      logger.warning(message, metadata: ["load": "\(load)"].merging(error.logMetadata) { $1 })
    }
    switch event {
    case .storeFailed(_, let error): warn("a store could not be written", error)
    case .readFailed(_, let error): warn("a store could not be read", error)
    case .backgroundFailed(_, let error): warn("a background revalidation failed", error)
    default: break
    }
  }
}

extension LoadRecord {
  fileprivate var title: String {
    guard let error else { return fallbackReason == nil ? "loaded" : "loaded stale" }
    return error.isCancellation ? "cancelled" : "not loaded"
  }

  fileprivate var logMetadata: Logger.Metadata {
    var metadata: Logger.Metadata = ["load": "\(load)", "url": "\(url.withoutQuery)", "ms": "\(duration.milliseconds)"]
    metadata["source"] = source.map { "\($0.rawValue)" }
    metadata["fallback-reason"] = fallbackReason.map { "\($0.code.rawValue)" }
    metadata["joined"] = joined.map { "\($0)" }
    if let error { metadata.merge(error.logMetadata) { $1 } }
    if let last = transfers.last {
      metadata["status"] = last.status.map { "\($0)" }
      metadata["bytes"] = "\(bytesOnWire)"
      metadata["queue-ms"] = last.metrics.queued.map { "\($0.milliseconds)" }
      metadata["head-ms"] = last.metrics.timeToHead.map { "\($0.milliseconds)" }
    }
    var times: [String: Duration] = [:]
    for phase in phases { times[phase.work.logName, default: .zero] += phase.duration }
    for (name, time) in times { metadata[name] = "\(time.milliseconds)" }
    return metadata
  }
}

extension LoadRecord.Work {
  /// The name of the metadata field for the duration of such phases.
  fileprivate var logName: String {
    switch self {
    case .transfer: "transfer-ms"
    case .transform: "transform-ms"
    case .store: "store-ms"
    }
  }
}

extension CacheError {
  /// The error without its URL, which may have a query.
  fileprivate var logMetadata: Logger.Metadata {
    var metadata: Logger.Metadata = ["error": "\(code.rawValue)"]
    metadata["status"] = status.map { "\($0)" }
    metadata["path"] = path.map { "\($0)" }
    metadata["errno"] = errno.map { "\($0)" }
    return metadata
  }
}

extension Duration {
  /// The duration in milliseconds, rounded to microseconds.
  fileprivate var milliseconds: Double { (self / .microseconds(1)).rounded() / 1_000 }
}
#endif
