internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The bytes of a load, with everything that a ``Resource`` states about them.
///
/// A reference, because every stage at the end of a load passes it on.
@dynamicMemberLookup
final class LoadOutcome: Shareable {
  struct Parts: Sendable {
    var data: Data
    var metadata: StoredMetadata
    var key: CacheKey
    var url: URL
    var redirects: [URL] = []
    var source: ResourceSource
    var validation: RevalidationOutcome
    var timeToHead: Duration?
    var metrics = TransferMetrics.nothing
    var isShareable = true
    /// The error that caused this stale response to be served.
    var fallbackReason: CacheError?
    /// Whether the response may be stored.
    var isStored = true
    /// Whether the bytes were left in the durable store, because the stored transforms are enough.
    var isBodyLeft = false
    /// The encoded values of these transforms.
    var encoded: [String: Data] = [:]
    /// The origin of the value.
    var valueOrigin = ValueOrigin.original
    /// The part of the memory budget that ``data`` uses, or `nil` if it uses none.
    var reservation: MemoryReservation?
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  var isShareable: Bool { parts.isShareable }

  /// Returns a copy that `change` has changed.
  func with(_ change: (inout Parts) -> Void) -> LoadOutcome {
    var changed = parts
    change(&changed)
    return LoadOutcome(changed)
  }

  subscript<Part>(dynamicMember part: KeyPath<Parts, Part>) -> Part { parts[keyPath: part] }

  /// Whether a stored response is used past its freshness, without a confirmation by the origin.
  private func isPastFreshness(at now: Timestamp) -> Bool {
    switch parts.source {
    case .memory, .disk: now >= parts.metadata.freshness.freshUntil
    case .revalidated, .network, .schemeHandler: false
    }
  }

  func resource<Value: Sendable>(_ value: Value, clock: any CacheClock, startedAt start: Duration) -> Resource<Value> {
    let now = clock.now
    return Resource(
      value: value, url: parts.url, redirects: parts.redirects, response: parts.metadata.response, source: parts.source,
      validation: parts.validation, age: parts.metadata.freshness.age(at: now), isStale: isPastFreshness(at: now),
      fallbackReason: parts.fallbackReason,
      timing: LoadTiming(total: clock.uptime - start, timeToHead: parts.timeToHead), metrics: parts.metrics, key: parts.key,
      revision: parts.metadata.revision, valueOrigin: parts.valueOrigin)
  }
}

/// A value that was made from the bytes of a load.
struct TransformedOutcome<Value: Sendable>: Shareable {
  var value: Value
  var fetched: LoadOutcome

  var isShareable: Bool { fetched.isShareable }
}
