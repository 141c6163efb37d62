internal import CacheCore
internal import HTTPTypes
internal import Synchronization

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The list of a resource's stored variants in the memory store. It contains only metadata, without bytes and values.
///
/// A 304 replaces this one small entry, and the new metadata applies to every value that was made from the response. A value
/// whose revision is not listed is a miss, so no values are enumerated.
struct VariantIndex: Sendable {
  var records: [ResponseRecord] = []

  func metadata(of variant: String) -> StoredMetadata? { records.first { $0.variant == variant }?.metadata }

  /// Records that the index has one record alone, if it does.
  ///
  /// - Parameter position: A position of the resource's epoch at which the index was current.
  func confirm(at position: UInt64) {
    if records.count == 1 { records[0].confirm(at: position) }
  }

  /// Replaces the record of the same variant, or adds the first one.
  mutating func put(_ record: ResponseRecord) {
    records.removeAll { $0.variant == record.variant }
    records.append(record)
  }

  /// Returns the index as an entry, or `nil` if the index is empty.
  func entry() -> MemoryEntry? {
    guard let newest = records.max(by: { $0.metadata.responseTime < $1.metadata.responseTime }) else { return nil }
    let cost = records.reduce(256) { $0 + $1.variant.utf8.count + $1.metadata.approximateSize }
    return MemoryEntry(self, cost: cost, revision: newest.metadata.revision, expiration: newest.metadata.memoryExpiration)
  }
}

/// The memory store from the view of one load. Revisions link the entries of a resource to each other.
struct MemoryTier: Sendable {
  let store: any MemoryStoring

  func index(of resource: String) -> VariantIndex? { index(of: CacheKey(resource: resource)) }

  /// - Parameter key: The key of the resource, without a variant or a transform.
  func index(of key: CacheKey) -> VariantIndex? {
    // A change that this reading misses advances the epoch after this position, before it returns.
    let position = ResourceEpoch(of: key).position
    let index = store.entry(for: key.with(transform: Self.indexTransform))?.value(as: VariantIndex.self)
    index?.confirm(at: position)
    return index
  }

  /// Records metadata in one step, unless memory has later metadata for the variant or `isAllowed` returns `false`.
  ///
  /// - Parameters:
  ///   - key: The key of the response.
  ///   - validator: The validator that has accepted the response.
  ///   - clock: The clock of the responses' times.
  ///   - isAllowed: Called with the current metadata in memory, or with `nil` if there is none.
  /// - Returns: The record of this metadata, or `nil` if memory does not have it.
  func putRecord(
    _ metadata: StoredMetadata, _ key: CacheKey, by validator: ComponentID?, _ clock: any CacheClock,
    if isAllowed: (StoredMetadata?) -> Bool
  ) -> ResponseRecord? {
    let record = ResponseRecord(metadata, key, by: validator)
    let isRecorded = replacing(responsesUntil: metadata.responseTime, clock) { mayReplace in
      change(key.ofResource) { index in
        let known = index.metadata(of: key.variant)
        guard mayReplace(known), isAllowed(known) else { return false }
        index.put(record)
        return true
      }
    }
    return isRecorded ? record : nil
  }

  /// Runs a step that must not replace a later response. If that response has a time in the future, the time comes from before
  /// the clock was set back and says nothing about the order. The step is then repeated, and may replace that response.
  ///
  /// The clock is read after the step: a response that arrives after an earlier reading would count as one of the future.
  ///
  /// - Parameter step: Receives whether it may replace a response, and returns whether it has stored the new one.
  private func replacing(
    responsesUntil time: Timestamp, _ clock: any CacheClock, _ step: ((StoredMetadata?) -> Bool) -> Bool
  ) -> Bool {
    var future: Timestamp?
    while true {
      var later: Timestamp?
      let isStored = step { known in
        guard let known, known.responseTime > time, known.responseTime != future else { return true }
        later = known.responseTime
        return false
      }
      guard let later, case let now = clock.now, later > now, time <= now else { return isStored }
      future = later
    }
  }

  /// Removes a variant from the index if `matches` accepts its metadata.
  func forget(_ variant: String, of resource: String, where matches: (StoredMetadata) -> Bool) {
    _ = change(CacheKey(resource: resource)) { index in
      guard let known = index.metadata(of: variant), matches(known) else { return false }
      index.records.removeAll { $0.variant == variant }
      return true
    }
  }

  /// Removes the response that another one replaces, unless it is later.
  func forget(_ variant: String, of resource: String, replacedBy metadata: StoredMetadata, _ clock: any CacheClock) {
    _ = replacing(responsesUntil: metadata.responseTime, clock) { mayReplace in
      change(CacheKey(resource: resource)) { index in
        guard let known = index.metadata(of: variant), known.revision != metadata.revision, mayReplace(known) else {
          return false
        }
        index.records.removeAll { $0.variant == variant }
        return true
      }
    }
  }

  /// Changes the index of a resource in one step. If the index then has one record, the record is confirmed, so the first hit is
  /// plain.
  ///
  /// The record is confirmed at the position to which this change advances the epoch, unless another change has advanced it since
  /// this one began. Every change, removal and purge is visible before it advances the epoch, and advances it before it returns.
  /// One that advanced the epoch before this change began is therefore in the index that this change has read. One that advances
  /// it later ends the confirmation before it returns. If two changes overlap, the second to advance the epoch confirms no
  /// record. If the store evicts the index, its record is not outdated, and the next change advances the epoch all the same.
  ///
  /// - Parameter key: The key of the resource, without a variant or a transform.
  /// - Returns: Whether memory now has the index that `change` made.
  func change(_ key: CacheKey, _ change: (inout VariantIndex) -> Bool) -> Bool {
    let epoch = ResourceEpoch(of: key)
    let position = epoch.position
    var isUnchanged = false
    var index = VariantIndex()
    let hasChanged = store.update(key.with(transform: Self.indexTransform)) { entry in
      let known = entry?.value(as: VariantIndex.self)
      index = known ?? VariantIndex()
      guard change(&index) else {
        isUnchanged = known != nil
        return .keep
      }
      return index.entry().map { .replace($0) } ?? .remove
    }
    if isUnchanged { return hasChanged }
    // Values of an index that was evicted may have to go, too. A store that refuses an index has removed the former one.
    let next = epoch.advance()
    if hasChanged, next == position &+ 1 { index.confirm(at: next) }
    return hasChanged
  }

  /// Returns the value of `key` if it was made from the body that `metadata` describes.
  ///
  /// - Parameter record: The record of the metadata, or `nil` if memory may have another one. If a 304 has replaced the record to
  ///   which the entry refers, the entry then refers to this one, so the next hit is plain.
  func value<Value: Sendable>(
    of key: CacheKey, for metadata: StoredMetadata, _ record: ResponseRecord? = nil, as type: Value.Type
  ) -> Value? {
    guard let entry = store.entry(for: key), entry.revision == metadata.revision, let value = entry.value(as: type) else {
      return nil
    }
    // A record that is outdated by now is not current, so it makes no hit.
    if let record, entry.record !== record, record.isPlain, record.revision == entry.revision {
      store.update(key) { $0 === entry ? .replace(MemoryEntry(entry, record: record)) : .keep }
    }
    return value
  }

  /// Inserts a value in one step, unless memory has the value of a later response under the key.
  @discardableResult
  func insert<Value: Sendable>(
    _ value: Value, cost: Int, of key: CacheKey, in record: ResponseRecord, _ clock: any CacheClock
  ) -> Bool {
    // The cost comes from a caller's transform, so it can be any number.
    let (sum, overflow) = max(0, cost).addingReportingOverflow(256 + key.resource.utf8.count)
    let entry = MemoryEntry(
      value, cost: overflow ? .max : sum, revision: record.revision, expiration: record.metadata.memoryExpiration,
      record: record)
    return replacing(responsesUntil: record.metadata.responseTime, clock) { mayReplace in
      store.update(key) { known in
        let other = (known?.record as? ResponseRecord).flatMap { $0.revision == record.revision ? nil : $0.metadata }
        return mayReplace(other) ? .replace(entry) : .keep
      }
    }
  }

  func remove(_ resource: String) {
    let key = CacheKey(resource: resource)
    for record in index(of: key)?.records ?? [] {
      store.remove(CacheKey(resource: resource, variant: record.variant), ifRevision: nil)
    }
    // No lookup finds the transforms' values without the index. The store evicts them when it needs memory.
    store.remove(key.with(transform: Self.indexTransform), ifRevision: nil)
    ResourceEpoch(of: key).advance()
  }

  func removeAll() {
    store.removeAll()
    // A load may insert a value whose index was removed.
    ResourceEpoch.advanceAll()
  }

  /// Whether a key belongs to a resource's index.
  static func isIndex(_ key: CacheKey) -> Bool { key.transform == indexTransform }

  /// The transform in the key of an index. It never equals the transform of a decoder, because those are printable.
  private static let indexTransform = "\u{1F}index"
}

extension StoredMetadata {
  /// The end of the time to live, which counts from the response and not from a promotion to another layer.
  fileprivate var memoryExpiration: Expiration? {
    guard let expiration, expiration != .never else { return expiration }
    return .at(expiration.deadline(from: responseTime))
  }

  fileprivate var approximateSize: Int {
    let fields = response.headerFields
    return fields.indices.reduce(256) { $0 + fields[$1].name.rawName.utf8.count + fields[$1].value.utf8.count }
  }
}

extension CacheKey {
  /// The key of the resource, without a variant or a transform. A new key hashes its text, and most keys have neither.
  fileprivate var ofResource: CacheKey { variant.isEmpty && transform.isEmpty ? self : CacheKey(resource: resource) }
}

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

  init(_ metadata: StoredMetadata, _ key: CacheKey, by validator: ComponentID?) {
    (variant, self.metadata, self.validator) = (key.variant, metadata, validator)
    let parts = ResourceID.parts(of: key.resource)
    isNamesake = parts.kind == .uri && ResourceID.isURI(parts.text, of: metadata.request)
    (response, freshness) = (metadata.response, metadata.freshness)
    (status, revision) = (response.status.code, metadata.revision)
    epoch = ResourceEpoch(of: key.ofResource)
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
