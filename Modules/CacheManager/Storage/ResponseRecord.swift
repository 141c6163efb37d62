internal import CacheCore
internal import HTTPTypes
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The record of a response in the memory store. The index of its resource and the values that were made from its body refer to
/// it, so that a hit needs only the value's entry.
///
/// The metadata of a record never changes. A 304 puts a new record into the index.
final class ResponseRecord: Sendable {
  let variant: String
  let metadata: StoredMetadata
  /// Whether the response belongs to the URI that names the resource, as nearly always. It does not if it is stored under a
  /// caller's key or came from a mirror.
  let isNamesake: Bool
  /// The validator that stored or used the response last. Another one may refuse it.
  let validator: ComponentID?
  // A hit reads these copies without the indirections of the metadata.
  let response: HTTPResponse
  let revision: Revision
  let status: Int
  let freshness: Freshness

  private let epoch: ResourceEpoch
  private let confirmedPosition = Atomic(ResourceEpoch.never)
  private let acceptingRules = Atomic<UInt64>(0)
  private let uses = Atomic(0)

  init(_ metadata: StoredMetadata, _ key: CacheKey, by validator: (any ResponseValidator)?) {
    (variant, self.metadata, self.validator) = (key.variant, metadata, validator?.id)
    let parts = ResourceID.parts(of: key.resource)
    isNamesake = parts.kind == .uri && ResourceID.isURI(parts.text, of: metadata.request)
    (response, freshness) = (metadata.response, metadata.freshness)
    (status, revision) = (response.status.code, metadata.revision)
    epoch = ResourceEpoch(of: key.resource)
  }

  private init(_ other: ResponseRecord, _ metadata: StoredMetadata) {
    (variant, isNamesake, validator, epoch) = (other.variant, other.isNamesake, other.validator, other.epoch)
    (self.metadata, response, status) = (metadata, other.response, other.status)
    (freshness, revision) = (metadata.freshness, metadata.revision)
  }

  func markedStale(at now: Timestamp) -> ResponseRecord { ResponseRecord(self, metadata.markedStale(at: now)) }

  /// Whether plain requests may use the response if it is the only one of its resource. Such a request has no fields that select
  /// a response, and follows redirects.
  var isPlain: Bool {
    variant.isEmpty && isNamesake && validator != nil && metadata.expiration == nil
      && metadata.request.headerFields.isEmpty && status != 206 && !(300..<400).contains(status)
  }

  // MARK: Being current

  /// Whether no index of the resource has changed since the record was confirmed.
  var isCurrent: Bool { confirmedPosition.load(ordering: .relaxed) == epoch.position }

  /// Records that the index listed this record alone, so that plain requests may use it.
  ///
  /// - Parameter position: A position of the epoch at which the index was current. If the index has changed since then, the
  ///   confirmation has no effect.
  func confirm(at position: UInt64) {
    if isPlain { confirmedPosition.store(position, ordering: .relaxed) }
  }

  /// The number of the latest rules that have accepted the response. Rules and responses never change.
  var acceptor: UInt64 {
    get { acceptingRules.load(ordering: .relaxed) }
    set { acceptingRules.store(newValue, ordering: .relaxed) }
  }

  /// Counts a hit that did not read the index. Returns whether the hit must read it, as every 16th does: the store would
  /// otherwise evict the index of values in constant use. Threads may lose counts.
  func countUse() -> Bool {
    let count = uses.load(ordering: .relaxed) &+ 1
    uses.store(count, ordering: .relaxed)
    return count & 15 == 0
  }
}

/// The count of changes to the indexes of a resource, in all memory stores of the process.
///
/// An index can be evicted before the values that it lists, so a change cannot find all records that it makes outdated. Instead,
/// the records compare the count with its value at their confirmation. Resources share 4,096 counters. A change to one of them
/// costs the other resources that share it a lookup of their index.
///
/// Proof of `@unchecked Sendable`: the counters are allocated once per process and never freed, and all access is atomic.
struct ResourceEpoch: @unchecked Sendable {
  /// A position that no counter has.
  static let never = UInt64.max

  private static let count = 4_096
  private static let counters = ResourceEpoch()

  private let counter: UnsafeMutablePointer<Atomic<UInt64>>

  init(of resource: String) { self.init(of: CacheKey(resource: resource)) }

  /// - Parameter key: The key of the resource, without a variant or a transform.
  init(of key: CacheKey) { counter = Self.counters.counter + (key.fingerprint >> (Int.bitWidth / 2)) & (Self.count - 1) }

  private init() {
    counter = .allocate(capacity: Self.count)
    for number in 0..<Self.count { (counter + number).initialize(to: Atomic(0)) }
  }

  var position: UInt64 { counter.pointee.load(ordering: .acquiring) }

  /// Records a change, and returns the new position. It must be called after the change is visible to lookups: a record that is
  /// confirmed at the new position was read from the changed index.
  @discardableResult
  func advance() -> UInt64 { counter.pointee.wrappingAdd(1, ordering: .releasing).newValue }

  /// Records a change to all resources.
  static func advanceAll() {
    for number in 0..<count { (counters.counter + number).pointee.wrappingAdd(1, ordering: .releasing) }
  }
}
