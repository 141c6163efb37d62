internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What is stored of one resource, as the memory store keeps it: metadata alone, apart from bytes and values.
///
/// A 304 replaces this one small facet and every derived value sees it; a value whose revision is not here is a miss, without enumeration.
struct MemoryIndex: Sendable {
  struct Element: Sendable {
    var variant: String
    var metadata: StoredMetadata
  }

  var elements: [Element] = []

  mutating func replace(_ variant: String, with metadata: StoredMetadata) {
    elements.removeAll { $0.variant == variant }
    elements.append(Element(variant: variant, metadata: metadata))
  }
}

/// The memory store as one load sees it: facets of resources, tied by revisions.
struct MemoryFacets: Sendable {
  /// Not a form that a decoder can have: forms are printable.
  private static let indexForm = "\u{1F}index"

  let store: any MemoryStoring

  func index(of resource: String) -> MemoryIndex? {
    store.entry(for: CacheKey(resource: resource, form: Self.indexForm))?.value(as: MemoryIndex.self)
  }

  func setIndex(_ index: MemoryIndex, of resource: String) {
    let key = CacheKey(resource: resource, form: Self.indexForm)
    guard let newest = index.elements.max(by: { $0.metadata.responseTime < $1.metadata.responseTime }) else {
      store.remove(key, ifRevision: nil)
      return
    }
    let cost = index.elements.reduce(256) { $0 + $1.variant.utf8.count + $1.metadata.approximateSize }
    store.insert(
      MemoryEntry(index, cost: cost, revision: newest.metadata.revision, expiration: newest.metadata.memoryExpiration), for: key)
  }

  /// The facet of `key`, when it was made from the body that `metadata` describes.
  func value<Value: Sendable>(of key: CacheKey, for metadata: StoredMetadata, as type: Value.Type) -> Value? {
    guard let entry = store.entry(for: key), entry.revision == metadata.revision else { return nil }
    return entry.value(as: type)
  }

  @discardableResult
  func insert<Value: Sendable>(_ value: Value, cost: Int, of key: CacheKey, for metadata: StoredMetadata) -> Bool {
    let overhead = 256 + key.resource.utf8.count
    return store.insert(
      MemoryEntry(value, cost: cost + overhead, revision: metadata.revision, expiration: metadata.memoryExpiration), for: key)
  }

  func remove(_ resource: String) {
    for element in index(of: resource)?.elements ?? [] {
      store.remove(CacheKey(resource: resource, variant: element.variant), ifRevision: nil)
    }
    // Derived values are unreachable without the index, and leave as the store needs room.
    store.remove(CacheKey(resource: resource, form: Self.indexForm), ifRevision: nil)
  }
}

extension StoredMetadata {
  /// The time to live counts from the answer, wherever and whenever it is promoted.
  fileprivate var memoryExpiration: Expiration? {
    guard let expiration, expiration != .never else { return expiration }
    return .at(expiration.deadline(from: responseTime))
  }

  fileprivate var approximateSize: Int {
    response.headerFields.reduce(256) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count }
  }
}
