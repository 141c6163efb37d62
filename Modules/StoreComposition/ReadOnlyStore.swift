public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A store that is read and never written: files that an app ships, or any other store, kept from changes.
///
/// ```swift
/// let bundled = try ReadOnlyStore(folder: Bundle.main.bundleURL.appending(path: "Pictures"))
/// configuration.store = try LayeredStore([DiskCache(folder: caches), bundled])
/// ```
///
/// Storing, freshening and removing are refused with `CacheError.Code.readOnly`. In a ``LayeredStore`` they go to the layers that
/// take them.
public final class ReadOnlyStore: CacheStore {
  private let store: any CacheStore

  /// The files of a folder, as its manifest says; `Modules/StoreComposition/StoreComposition.docc/StoreComposition.md`
  /// describes it.
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
  /// What is shipped is stale from the start unless the manifest says for how long it is fresh, so a load with `.standard` asks
  /// the server whether it still holds, and shows it when nobody answers; `.cacheFirst` shows it without asking.
  ///
  /// Reads the manifest, and asks for the size of each file, before it returns, in the caller's thread. Bodies are read when they
  /// are pulled.
  ///
  /// - Parameters:
  ///   - folder: where the files are; nothing outside it is read.
  ///   - manifest: the manifest's name in it.
  /// - Throws: `CacheError.Code.fileSystem` with the path when the manifest, or a file that it names, can't be read;
  ///   `CacheError.Code.invalidConfiguration` when the manifest says what makes no sense, or leads out of the folder.
  public convenience init(folder: URL, manifest: String = "manifest.json") throws(CacheError) {
    try self.init(BundledFolder(folder, manifest: manifest))
  }

  /// Another store, which is read only.
  public init(_ store: any CacheStore) {
    self.store = store
    let inner = store.id
    id = ComponentID(ReadOnlyStore.self, parameters: "\(inner.type) \(inner.parameters)")
  }

  /// Equal for those that read the same store.
  public let id: ComponentID

  public func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { try await store.variants(of: resource) }

  public func transforms(of resource: String) async throws(CacheError) -> [ListedEntry] {
    try await store.transforms(of: resource)
  }

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

  public func usage() async throws(CacheError) -> StoreUsage? { try await store.usage() }

  /// - Throws: `CacheError.Code.readOnly`, always.
  public func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    throw Self.refusal
  }

  /// - Throws: `CacheError.Code.readOnly`, always.
  public func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool
  { throw Self.refusal }

  /// - Throws: `CacheError.Code.readOnly`, always.
  public func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) { throw Self.refusal }

  /// - Throws: `CacheError.Code.readOnly`, always.
  public func removeAll() async throws(CacheError) { throw Self.refusal }

  private static let refusal = CacheError(.readOnly, reason: "the store can only be read")
}
