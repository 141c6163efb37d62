public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A read-only store: files that an app ships, or any other store, protected from changes.
///
/// ```swift
/// let bundled = try ReadOnlyStore(folder: Bundle.main.bundleURL.appending(path: "Images"))
/// configuration.store = try LayeredStore([DiskCache(folder: caches), bundled])
/// ```
///
/// Stores, metadata updates and removals are refused with `CacheError.Code.readOnly`. In a ``LayeredStore``, they go to the
/// layers that accept them.
public final class ReadOnlyStore: CacheStore {
  private let store: any CacheStore

  /// Creates a store from the files of a folder and their manifest. <doc:/StoreComposition> describes the manifest.
  ///
  /// ```json
  /// { "version": 1, "entries": [
  ///   {
  ///     "url": "https://example.com/logo.svg", "file": "logo.svg",
  ///     "fields": { "Content-Type": "image/svg+xml", "ETag": "\"7\"" }
  ///   }
  /// ] }
  /// ```
  ///
  /// Shipped files are stale unless the manifest states a freshness lifetime. A load with `.standard` revalidates them and uses
  /// them if the origin cannot be reached. A load with `.cacheFirst` uses them without revalidation.
  ///
  /// The initializer reads the manifest and the size of each file on the caller's thread. Bodies are read on demand.
  ///
  /// - Parameters:
  ///   - folder: The folder of the files. Nothing outside it is read.
  ///   - manifest: The name of the manifest in the folder.
  /// - Throws: `CacheError.Code.fileSystem`, with the path, if the manifest or a file that it names cannot be read.
  ///   `CacheError.Code.invalidConfiguration` if the manifest is invalid or names a file outside the folder.
  public convenience init(folder: URL, manifest: String = "manifest.json") throws(CacheError) {
    try self.init(BundledFolder(folder, manifest: manifest))
  }

  /// Creates a read-only view of another store.
  public init(_ store: any CacheStore) {
    self.store = store
    let inner = store.id
    id = ComponentID(ReadOnlyStore.self, parameters: "\(inner.type) \(inner.parameters)")
  }

  /// An identifier that is equal for views of the same store.
  public let id: ComponentID

  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { try await store.variants(of: resource) }

  public func latestVariants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await store.latestVariants(of: resource)
  }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await store.transforms(of: resource)
  }

  public func entries(of resource: String) async throws(CacheError) -> [ListedEntry] { try await store.entries(of: resource) }

  public func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    try await store.entry(for: key, range: range)
  }

  public func values(for keys: [CacheKey]) async throws(CacheError) -> [CacheKey: StoredEntry] {
    try await store.values(for: keys)
  }

  public func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    try await store.entries(where: isWanted)
  }

  public func keys(tagged tag: String) async throws(CacheError) -> Set<CacheKey> { try await store.keys(tagged: tag) }

  public func usage() async throws(CacheError) -> StoreUsage? { try await store.usage() }

  /// - Throws: Always `CacheError.Code.readOnly`.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    throw Self.refusal
  }

  /// - Throws: Always `CacheError.Code.readOnly`.
  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool
  { throw Self.refusal }

  /// - Throws: Always `CacheError.Code.readOnly`.
  public func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) { throw Self.refusal }

  /// - Throws: Always `CacheError.Code.readOnly`.
  public func removeAll() async throws(CacheError) { throw Self.refusal }

  static let refusal = CacheError(.readOnly, reason: "the store is read-only")
}
