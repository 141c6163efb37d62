internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What is stored of one resource, as the memory store keeps it: metadata alone, apart from bytes and values.
///
/// A 304 replaces this one small facet and every derived value sees it; a value whose revision is not here is a miss, without
/// enumeration.
struct VariantIndex: Sendable {
  struct Element: Sendable {
    let variant: String
    private(set) var metadata: StoredMetadata
    /// Whether it is an answer to a request for what the resource is named by, as nearly always: not so for what is kept under a
    /// caller's key, or has come from a mirror.
    let isNamesake: Bool

    init(_ variant: String, _ metadata: StoredMetadata, of resource: String) {
      (self.variant, self.metadata) = (variant, metadata)
      guard let uri = ResourceID.uri(of: metadata.request) else {
        isNamesake = false
        return
      }
      isNamesake = uri == resource || ResourceID.make(uri: uri, partition: ResourceID.parts(of: resource).partition) == resource
    }

    func markedStale(at now: Timestamp) -> Element {
      var stale = self
      stale.metadata = metadata.markedStale(at: now)
      return stale
    }
  }

  var elements: [Element] = []

  func element(of variant: String) -> StoredMetadata? { elements.first { $0.variant == variant }?.metadata }

  /// Puts an element in the place of what is known of its variant.
  mutating func put(_ element: Element) {
    elements.removeAll { $0.variant == element.variant }
    elements.append(element)
  }

  /// The index as an entry; nil when it lists nothing.
  func entry() -> MemoryEntry? {
    guard let newest = elements.max(by: { $0.metadata.responseTime < $1.metadata.responseTime }) else { return nil }
    let cost = elements.reduce(256) { $0 + $1.variant.utf8.count + $1.metadata.approximateSize }
    return MemoryEntry(self, cost: cost, revision: newest.metadata.revision, expiration: newest.metadata.memoryExpiration)
  }
}

/// The memory store as one load sees it: facets of resources, tied by revisions.
struct MemoryTier: Sendable {
  let store: any MemoryStoring

  func index(of resource: String) -> VariantIndex? { index(of: CacheKey(resource: resource)) }

  /// - Parameter key: of the resource, without a variant or a transform.
  func index(of key: CacheKey) -> VariantIndex? {
    store.entry(for: key.with(transform: Self.indexTransform))?.value(as: VariantIndex.self)
  }

  /// Records metadata in one step, unless memory has a later word about the variant or `isAllowed` says no.
  ///
  /// - Parameter isAllowed: told what memory has now.
  /// - Returns: whether memory speaks of this metadata now.
  func record(
    _ metadata: StoredMetadata, variant: String, of resource: String, if isAllowed: (StoredMetadata?) -> Bool
  ) -> Bool {
    let element = VariantIndex.Element(variant, metadata, of: resource)
    return change(resource) { index in
      let known = index.element(of: variant)
      if let known, known.responseTime > metadata.responseTime { return false }
      guard isAllowed(known) else { return false }
      index.put(element)
      return true
    }
  }

  /// Removes what memory says of a variant, when it is of the given revision, or of any other than the given one.
  func forget(_ variant: String, of resource: String, where matches: (Revision) -> Bool) {
    _ = change(resource) { index in
      guard let known = index.element(of: variant), matches(known.revision) else { return false }
      index.elements.removeAll { $0.variant == variant }
      return true
    }
  }

  /// Changes what memory says of a resource, in one step.
  ///
  /// - Returns: whether it says now what `change` made of it.
  func change(_ resource: String, _ change: (inout VariantIndex) -> Bool) -> Bool {
    store.update(Self.key(of: resource)) { entry in
      var index = entry?.value(as: VariantIndex.self) ?? VariantIndex()
      guard change(&index) else { return .keep }
      return index.entry().map { .replace($0) } ?? .remove
    }
  }

  /// The facet of `key`, when it was made from the body that `metadata` describes.
  func value<Value: Sendable>(of key: CacheKey, for metadata: StoredMetadata, as type: Value.Type) -> Value? {
    guard let entry = store.entry(for: key), entry.revision == metadata.revision else { return nil }
    return entry.value(as: type)
  }

  @discardableResult
  func insert<Value: Sendable>(_ value: Value, cost: Int, of key: CacheKey, for metadata: StoredMetadata) -> Bool {
    // A transform's cost is a user's number: it may be any.
    let (sum, overflow) = max(0, cost).addingReportingOverflow(256 + key.resource.utf8.count)
    return store.insert(
      MemoryEntry(value, cost: overflow ? .max : sum, revision: metadata.revision, expiration: metadata.memoryExpiration),
      for: key)
  }

  func remove(_ resource: String) {
    for element in index(of: resource)?.elements ?? [] {
      store.remove(CacheKey(resource: resource, variant: element.variant), ifRevision: nil)
    }
    // Derived values are unreachable without the index, and leave as the store needs room.
    store.remove(Self.key(of: resource), ifRevision: nil)
  }

  /// Whether a key is that of a resource's index.
  static func isIndex(_ key: CacheKey) -> Bool { key.transform == indexTransform }

  private static func key(of resource: String) -> CacheKey { CacheKey(resource: resource, transform: indexTransform) }

  /// Not a transform that a decoder can have: transforms are printable.
  private static let indexTransform = "\u{1F}index"
}

extension StoredMetadata {
  /// The time to live counts from the answer, wherever and whenever it is promoted.
  fileprivate var memoryExpiration: Expiration? {
    guard let expiration, expiration != .never else { return expiration }
    return .at(expiration.deadline(from: responseTime))
  }

  fileprivate var approximateSize: Int {
    let fields = response.headerFields
    return fields.indices.reduce(256) { $0 + fields[$1].name.rawName.utf8.count + fields[$1].value.utf8.count }
  }
}
