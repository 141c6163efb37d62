internal import CacheCore
internal import HTTPTypes

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
  struct Element: Sendable {
    let variant: String
    private(set) var metadata: StoredMetadata
    /// Whether the response belongs to the URI that names the resource, as nearly always. It does not if it is stored under a
    /// caller's key or came from a mirror.
    let isNamesake: Bool
    /// The validator that stored or used the response last. Another one may refuse it.
    let validator: ComponentID?

    init(_ metadata: StoredMetadata, _ key: CacheKey, by validator: (any ResponseValidator)?) {
      (variant, self.metadata, self.validator) = (key.variant, metadata, validator?.id)
      let parts = ResourceID.parts(of: key.resource)
      isNamesake = parts.kind == .uri && ResourceID.isURI(parts.text, of: metadata.request)
    }

    func markedStale(at now: Timestamp) -> Element {
      var stale = self
      stale.metadata = metadata.markedStale(at: now)
      return stale
    }
  }

  var elements: [Element] = []

  func element(of variant: String) -> StoredMetadata? { elements.first { $0.variant == variant }?.metadata }

  /// Replaces the element of the same variant, or adds the first one.
  mutating func put(_ element: Element) {
    elements.removeAll { $0.variant == element.variant }
    elements.append(element)
  }

  /// Returns the index as an entry, or `nil` if the index is empty.
  func entry() -> MemoryEntry? {
    guard let newest = elements.max(by: { $0.metadata.responseTime < $1.metadata.responseTime }) else { return nil }
    let cost = elements.reduce(256) { $0 + $1.variant.utf8.count + $1.metadata.approximateSize }
    return MemoryEntry(self, cost: cost, revision: newest.metadata.revision, expiration: newest.metadata.memoryExpiration)
  }
}

/// The memory store from the view of one load. Revisions link the entries of a resource to each other.
struct MemoryTier: Sendable {
  let store: any MemoryStoring

  func index(of resource: String) -> VariantIndex? { index(of: CacheKey(resource: resource)) }

  /// - Parameter key: The key of the resource, without a variant or a transform.
  func index(of key: CacheKey) -> VariantIndex? {
    store.entry(for: key.with(transform: Self.indexTransform))?.value(as: VariantIndex.self)
  }

  /// Records metadata in one step, unless memory has later metadata for the variant or `isAllowed` returns `false`.
  ///
  /// - Parameters:
  ///   - key: The key of the response.
  ///   - validator: The validator that has accepted the response.
  ///   - isAllowed: Called with the current metadata in memory, or with `nil` if there is none.
  /// - Returns: Whether memory now has this metadata.
  func record(
    _ metadata: StoredMetadata, _ key: CacheKey, by validator: (any ResponseValidator)?, if isAllowed: (StoredMetadata?) -> Bool
  ) -> Bool {
    let element = VariantIndex.Element(metadata, key, by: validator)
    return change(key.resource) { index in
      let known = index.element(of: key.variant)
      if let known, known.responseTime > metadata.responseTime { return false }
      guard isAllowed(known) else { return false }
      index.put(element)
      return true
    }
  }

  /// Removes a variant from the index if `matches` accepts its revision.
  func forget(_ variant: String, of resource: String, where matches: (Revision) -> Bool) {
    _ = change(resource) { index in
      guard let known = index.element(of: variant), matches(known.revision) else { return false }
      index.elements.removeAll { $0.variant == variant }
      return true
    }
  }

  /// Changes the index of a resource in one step.
  ///
  /// - Returns: Whether memory now has the index that `change` made.
  func change(_ resource: String, _ change: (inout VariantIndex) -> Bool) -> Bool {
    store.update(Self.key(of: resource)) { entry in
      var index = entry?.value(as: VariantIndex.self) ?? VariantIndex()
      guard change(&index) else { return .keep }
      return index.entry().map { .replace($0) } ?? .remove
    }
  }

  /// Returns the value of `key` if it was made from the body that `metadata` describes.
  func value<Value: Sendable>(of key: CacheKey, for metadata: StoredMetadata, as type: Value.Type) -> Value? {
    guard let entry = store.entry(for: key), entry.revision == metadata.revision else { return nil }
    return entry.value(as: type)
  }

  @discardableResult
  func insert<Value: Sendable>(_ value: Value, cost: Int, of key: CacheKey, for metadata: StoredMetadata) -> Bool {
    // The cost comes from a caller's transform, so it can be any number.
    let (sum, overflow) = max(0, cost).addingReportingOverflow(256 + key.resource.utf8.count)
    return store.insert(
      MemoryEntry(value, cost: overflow ? .max : sum, revision: metadata.revision, expiration: metadata.memoryExpiration),
      for: key)
  }

  func remove(_ resource: String) {
    for element in index(of: resource)?.elements ?? [] {
      store.remove(CacheKey(resource: resource, variant: element.variant), ifRevision: nil)
    }
    // No lookup finds the transforms' values without the index. The store evicts them when it needs memory.
    store.remove(Self.key(of: resource), ifRevision: nil)
  }

  /// Whether a key belongs to a resource's index.
  static func isIndex(_ key: CacheKey) -> Bool { key.transform == indexTransform }

  private static func key(of resource: String) -> CacheKey { CacheKey(resource: resource, transform: indexTransform) }

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
