internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The bytes that a flight brought, with all that a ``Resource`` tells about them.
struct Fetched: Shareable {
  var data: Data
  var metadata: StoredMetadata
  var key: CacheKey
  var url: URL
  var redirects: [URL] = []
  var source: ResourceSource
  var validation: ETagValidationResult
  var timeToHead: Duration?
  var metrics = TransferMetrics.nothing
  var isShareable = true
  /// Why the answer that should have come did not, where a stored one stands in for it.
  var standsInFor: CacheError?
  /// Whether it is, or was, stored: not so for an answer that may not be.
  var isStored = true

  /// Shown without the origin's word, and past its freshness.
  private func isPastFreshness(at now: Timestamp) -> Bool {
    switch source {
    case .memory, .disk: now >= metadata.facts.freshUntil
    case .revalidated, .network, .provider: false
    }
  }

  func resource<Value: Sendable>(_ value: Value, clock: any CacheClock, startedAt start: Duration) -> Resource<Value> {
    let now = clock.now
    return Resource(
      value: value, url: url, redirects: redirects, response: metadata.response, source: source, validation: validation,
      age: metadata.facts.age(at: now), isStale: isPastFreshness(at: now), standsInFor: standsInFor?.about(url.address),
      timing: LoadTiming(total: clock.uptime - start, timeToHead: timeToHead), metrics: metrics, key: key,
      revision: metadata.revision)
  }
}

/// A value made from fetched bytes.
struct Derived<Value: Sendable>: Shareable {
  var value: Value
  var fetched: Fetched

  var isShareable: Bool { fetched.isShareable }
}
