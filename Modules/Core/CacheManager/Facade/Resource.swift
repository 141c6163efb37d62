// The interfaces of CacheManager use CacheCore's types, so one import provides both.
@_exported public import CacheCore
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The result of a load: the value, and the response from which it was made.
public struct Resource<Value: Sendable>: Sendable {
  /// The bytes, or the value that the transform made from them.
  public var value: Value
  /// The URL from which the bytes came, after redirects.
  public var url: URL
  /// The URLs that redirected, in order, starting with the requested one. Empty if there were no redirects.
  public var redirects: [URL]
  /// The status and the header fields, as stored or as received.
  public var response: HTTPResponse
  /// The source of the response: memory, disk, a revalidation, the network or a scheme handler.
  public var source: ResourceSource
  /// The outcome of revalidating a stored response, if the origin received a request.
  public var validation: RevalidationOutcome
  /// The age of the response when it was delivered (RFC 9111 §4.2.3), with fractions of a second. A text for people needs only
  /// `age.components.seconds`.
  public var age: Duration
  /// Whether the response was stale when it was delivered and the origin has not confirmed it.
  public var isStale: Bool
  /// The error that caused this stale response to be served (``validation`` is `.failed`), or `nil` if this is the requested
  /// response. Show the error as a warning.
  ///
  /// No response arrived before the deadline, or the origin failed and the stored response may be used in that case
  /// (`stale-if-error`, RFC 5861 §4, or `StaleFallback.anyStored`). Within the interval of `LoadPolicy.revalidate(atMostEvery:)`,
  /// the reason is the failure of the latest request.
  public var fallbackReason: CacheError?
  /// The time from the call to the result, by the manager's clock. It is zero for a hit in memory that no observer receives,
  /// because measuring it takes as long as the hit.
  public var duration: Duration
  /// The metrics of all transfers of the load, including redirects and repeated requests.
  ///
  /// Counts and durations are sums. The time to the head, the protocol and the connection are those of the last response from the
  /// network. A hit sends no request, so its attempts and bytes are zero.
  public var metrics: TransferMetrics {
    get { spent?.metrics ?? .nothing }
    set { spent = SpentMetrics(newValue) }
  }
  /// The metrics, or `nil` if no request was sent. They are half of a result's size, and a result is copied several times.
  private var spent: SpentMetrics?
  /// The key under which the response is stored, or would be stored.
  public var key: CacheKey
  /// The identity of the body. Equal revisions mean equal bytes.
  public var revision: Revision

  /// The origin of the value: made from bytes by this load, decoded from a stored variant, found in memory, or the bytes
  /// themselves. ``source`` states the source of the response.
  public var valueOrigin: ValueOrigin

  /// Creates a result from its parts, for fakes in tests.
  public init(
    value: Value, url: URL, redirects: [URL] = [], response: HTTPResponse = HTTPResponse(status: .ok), source: ResourceSource,
    validation: RevalidationOutcome = .notAttempted, age: Duration = .zero, isStale: Bool = false,
    fallbackReason: CacheError? = nil, duration: Duration = .zero, metrics: TransferMetrics = TransferMetrics(attempts: 0),
    key: CacheKey? = nil, revision: Revision = .random(), valueOrigin: ValueOrigin = .original
  ) {
    self.init(
      value: value, url: url, redirects: redirects, response: response, source: source, validation: validation, age: age,
      isStale: isStale, fallbackReason: fallbackReason, duration: duration,
      spent: metrics == .nothing ? nil : SpentMetrics(metrics), key: key ?? CacheKey(resource: url.absoluteString),
      revision: revision, valueOrigin: valueOrigin)
  }

  init(
    value: Value, url: URL, redirects: [URL] = [], response: HTTPResponse, source: ResourceSource,
    validation: RevalidationOutcome = .notAttempted, age: Duration, isStale: Bool = false, fallbackReason: CacheError? = nil,
    duration: Duration, spent: SpentMetrics?, key: CacheKey, revision: Revision, valueOrigin: ValueOrigin
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
    self.duration = duration
    self.spent = spent
    self.key = key
    self.revision = revision
    self.valueOrigin = valueOrigin
  }

  /// The number of body bytes that crossed the network for this load. It is zero for a hit and for a 304.
  public var bytesOnWire: Int64 { metrics.bytesOnWire }

  /// Returns the same result with another value.
  public func with<Other: Sendable>(_ value: Other) -> Resource<Other> {
    Resource<Other>(
      value: value, url: url, redirects: redirects, response: response, source: source, validation: validation, age: age,
      isStale: isStale, fallbackReason: fallbackReason, duration: duration, spent: spent, key: key, revision: revision,
      valueOrigin: valueOrigin)
  }
}

extension Resource where Value == Data {
  /// The bytes.
  public var data: Data { value }
}

/// The progress of a transfer.
public struct LoadProgress: Hashable, Sendable {
  /// The number of bytes received so far.
  public var received: Int64
  /// The total number of bytes, or `nil` if the origin does not state it.
  public var expected: Int64?

  /// Creates a progress from its parts.
  public init(received: Int64, expected: Int64? = nil) {
    self.received = received
    self.expected = expected
  }

  /// The received fraction, between 0 and 1, or `nil` if the total is not known.
  public var fraction: Double? {
    guard let expected, expected > 0 else { return nil }
    return min(1, Double(received) / Double(expected))
  }
}

/// An event of a load.
public enum ResourceEvent<Value: Sendable>: Sendable {
  /// Bytes were received. Reports arrive in order, and several may be merged into the last of them if the consumer is slow.
  case progress(LoadProgress)
  /// A stored value that may be outdated. The final value follows, or the stream throws.
  case stale(Resource<Value>)
  /// The result, after which no event follows.
  ///
  /// After a stale value, an equal ``Resource/revision`` with ``Resource/validation`` `.notModified` means that the stale value
  /// is still current. With `.failed`, the stale value could not be revalidated. Another revision means that the stale value is
  /// outdated.
  case final(Resource<Value>)
}
