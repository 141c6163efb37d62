public import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a load brought: the value, and where it came from.
public struct Resource<Value: Sendable>: Sendable {
  /// The bytes, or what the transform made of them.
  public var value: Value
  /// Where the bytes really came from, after redirects.
  public var url: URL
  /// The URLs that redirected, in order, the requested one first. Empty: none did.
  public var redirects: [URL]
  /// Status and fields, as stored or as received.
  public var response: HTTPResponse
  /// Memory, disk, revalidated, network or scheme handler.
  public var source: ResourceSource
  /// Whether the origin was asked about a stored answer, and what it said.
  public var validation: RevalidationOutcome
  /// How old the answer was when it was handed over (RFC 9111 §4.2.3).
  public var age: Duration
  /// Whether it was past its freshness when it was handed over, without the origin's word that it is still current.
  public var isStale: Bool
  /// Why the answer that should have come did not, where a stored one stands in for it (``validation`` is `.failed`): nobody
  /// could be reached, or the origin failed and the stored answer says that it may be shown then (`stale-if-error`, RFC 5861 §4).
  /// Show it as a warning. Nil: this is what was asked for.
  public var fallbackReason: CacheError?
  /// How long it took.
  public var timing: LoadTiming
  /// What its transfers cost: of all redirects, and of what was sent again, together. Counts and durations are sums; the time to
  /// the head, the protocol and the connection are those of the last answer that came over the network. For a hit nothing was
  /// sent: no attempts, no bytes.
  public var metrics: TransferMetrics
  /// What it is, or would be, filed under.
  public var key: CacheKey
  /// The identity of the body: equal revisions mean equal bytes.
  public var revision: Revision

  /// How the load came by its value: made of bytes by this load, decoded from a stored variant, found in memory, or the bytes
  /// themselves. Where the answer came from says ``source``.
  public var valueOrigin: ValueOrigin

  /// A result of its parts: for fakes in tests.
  public init(
    value: Value, url: URL, redirects: [URL] = [], response: HTTPResponse = HTTPResponse(status: .ok), source: ResourceSource,
    validation: RevalidationOutcome = .notAttempted, age: Duration = .zero, isStale: Bool = false,
    fallbackReason: CacheError? = nil, timing: LoadTiming = LoadTiming(), metrics: TransferMetrics = TransferMetrics(attempts: 0),
    key: CacheKey? = nil, revision: Revision = .random(), valueOrigin: ValueOrigin = .original
  ) {
    self.value = value
    self.url = url
    self.redirects = redirects
    self.response = response
    self.source = source
    self.validation = validation
    self.age = age
    self.isStale = isStale
    self.fallbackReason = fallbackReason
    self.timing = timing
    self.metrics = metrics
    self.key = key ?? CacheKey(resource: url.absoluteString)
    self.revision = revision
    self.valueOrigin = valueOrigin
  }

  /// Body bytes that crossed the network for this load; 0 for a hit and for a 304.
  public var bytesOnWire: Int64 { metrics.bytesOnWire }

  /// The same result with another value.
  public func with<Other: Sendable>(_ value: Other) -> Resource<Other> {
    Resource<Other>(
      value: value, url: url, redirects: redirects, response: response, source: source, validation: validation, age: age,
      isStale: isStale, fallbackReason: fallbackReason, timing: timing, metrics: metrics, key: key, revision: revision,
      valueOrigin: valueOrigin)
  }
}

extension Resource where Value == Data {
  /// The bytes.
  public var data: Data { value }
}

/// How long a load took, by the manager's clock.
public struct LoadTiming: Hashable, Sendable {
  /// From the call to the result.
  public var total: Duration
  /// From the request to the answer's head; nil when nobody was asked.
  public var timeToHead: Duration?

  /// Timing of its parts.
  public init(total: Duration = .zero, timeToHead: Duration? = nil) {
    self.total = total
    self.timeToHead = timeToHead
  }
}

/// How far a transfer has come.
public struct LoadProgress: Hashable, Sendable {
  /// Bytes that are here.
  public var received: Int64
  /// Bytes that will be here at the end; nil when the origin does not tell.
  public var expected: Int64?

  /// Progress of its parts.
  public init(received: Int64, expected: Int64? = nil) {
    self.received = received
    self.expected = expected
  }

  /// Between 0 and 1; nil when the end is not known.
  public var fraction: Double? {
    guard let expected, expected > 0 else { return nil }
    return min(1, Double(received) / Double(expected))
  }
}

/// What the event stream of a load yields.
public enum ResourceEvent<Value: Sendable>: Sendable {
  /// Bytes came. In order, and several may be folded into the last of them when the consumer is slow.
  case progress(LoadProgress)
  /// A stored value that may be outdated; the final one follows, or the stream throws.
  case stale(Resource<Value>)
  /// The result. Nothing follows. After a stale value: the same ``Resource/revision`` with ``Resource/validation`` `.notModified`
  /// says that it is still current, `.failed` that nobody could be asked, and another revision that it is outdated.
  case final(Resource<Value>)
}
