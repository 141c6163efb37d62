internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The bytes that a coalesced load brought, with all that a ``Resource`` tells about them.
///
/// Behind one reference, as ``ResolvedRequest`` is: it is handed on by every stage that a load ends through.
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
    /// Why the answer that should have come did not, where a stored one stands in for it.
    var fallbackReason: CacheError?
    /// Whether it is, or was, stored: not so for an answer that may not be.
    var isStored = true
    /// Whether the bytes were left in the durable store: who asked is content with a transform that is stored there.
    var isBodyLeft = false
    /// Such transforms' encoded values.
    var encoded: [String: Data] = [:]
    /// How the value came about.
    var valueOrigin = ValueOrigin.original
    /// What ``data`` takes of the memory budget; nil: nothing.
    var reservation: MemoryReservation?
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  var isShareable: Bool { parts.isShareable }

  /// The same, but for what `change` sets.
  func with(_ change: (inout Parts) -> Void) -> LoadOutcome {
    var changed = parts
    change(&changed)
    return LoadOutcome(changed)
  }

  subscript<Part>(dynamicMember part: KeyPath<Parts, Part>) -> Part { parts[keyPath: part] }

  /// Shown without the origin's word, and past its freshness.
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

/// A value made from fetched bytes.
struct TransformedOutcome<Value: Sendable>: Shareable {
  var value: Value
  var fetched: LoadOutcome

  var isShareable: Bool { fetched.isShareable }
}
