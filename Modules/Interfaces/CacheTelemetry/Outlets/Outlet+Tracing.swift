#if Tracing
internal import CacheCore
public import Tracing

extension Telemetry.Outlet {
  /// Creates spans with a tracer of swift-distributed-tracing.
  ///
  /// A load is a span `etagere.load`. Its parent is the span of the task that called the load. It has these children:
  /// - `etagere.transfer`: a request, or `etagere.revalidation`: a conditional request
  /// - `etagere.transform`: the creation of a value
  /// - `etagere.store`: a commit to the durable store
  ///
  /// A phase that ends after the result, such as a background revalidation, ends after the load's span.
  ///
  /// - Parameter tracer: The tracer, or `nil` for the one with which the instrumentation system was bootstrapped.
  ///   Without a tracer, the outlet receives nothing.
  public static func tracing(_ tracer: (any Tracer)? = nil) -> Self {
    let tracer = tracer ?? InstrumentationSystem.tracer
    guard !(tracer is NoOpTracer) else { return Self() }
    return Self(
      records: Records(note: { ServiceContext.current }) { record, context in
        trace(record, in: context as? ServiceContext ?? .topLevel, by: tracer)
      })
  }

  /// Creates the spans of a finished load.
  private static func trace(_ record: LoadRecord, in context: ServiceContext, by tracer: any Tracer) {
    let span = tracer.startSpan("etagere.load", context: context, at: record.instant(.zero))
    span.attributes["url.full"] = record.url.withoutQuery
    span.attributes["etagere.source"] = record.source?.rawValue
    span.attributes["etagere.fallback_reason"] = record.fallbackReason?.code.rawValue
    span.attributes["etagere.load"] = "\(record.load)"
    span.attributes["etagere.joined"] = record.joined.map { "\($0)" }
    span.note(record.error)
    tracePhases(of: record, in: span.context, by: tracer)
    span.end(at: record.instant(record.duration))
  }

  /// Returns the HTTP version in an ALPN name (RFC 7301): `1.1` of `http/1.1`, `2` of `h2`.
  private static func version(_ name: String) -> String {
    String(name.drop { !$0.isNumber })
  }

  private static func tracePhases(of record: LoadRecord, in context: ServiceContext, by tracer: any Tracer) {
    for phase in record.phases {
      let kind: SpanKind = if case .transfer = phase.work { .client } else { .internal }
      let span = tracer.startSpan(phase.work.spanName, context: context, ofKind: kind, at: record.instant(phase.start))
      span.attributes["etagere.load"] = "\(record.load)"
      switch phase.work {
      case .transfer(let transfer):
        span.attributes["url.full"] = transfer.url.withoutQuery
        span.attributes["http.response.status_code"] = transfer.status
        span.attributes["http.response.body.size"] = transfer.metrics.bytesOnWire
        span.attributes["network.protocol.name"] = "http"
        span.attributes["network.protocol.version"] = transfer.metrics.protocolName.map(version)
        span.note(transfer.error)
      case .transform(let origin): span.attributes["etagere.value"] = origin.rawValue
      case .store(let bytes): span.attributes["etagere.bytes"] = bytes
      }
      span.end(at: record.instant(phase.start + phase.duration))
    }
  }
}

extension LoadRecord {
  /// Returns the wall time at an offset from the start.
  fileprivate func instant(_ offset: Duration) -> DefaultTracerClock.Timestamp {
    .init(nanosecondsSinceEpoch: UInt64(max(0, (startedAt + offset).nanoseconds)))
  }
}

extension LoadRecord.Work {
  fileprivate var spanName: String {
    switch self {
    case .transfer(let transfer): transfer.isConditional ? "etagere.revalidation" : "etagere.transfer"
    case .transform: "etagere.transform"
    case .store: "etagere.store"
    }
  }
}

extension Span {
  /// Marks the span as failed. The error itself is not recorded, because its URL may contain a query.
  fileprivate func note(_ error: CacheError?) {
    guard let error else { return }
    attributes["error.type"] = error.code.rawValue
    if !error.isCancellation { setStatus(.init(code: .error, message: error.code.rawValue)) }
  }
}
#endif
