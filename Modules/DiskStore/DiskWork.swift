package import CacheCore

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The operations of a disk cache, run on the caller's thread without the executor.
///
/// It exists for measurements. The executor's order of calls for one resource is the caller's responsibility.
package struct DiskWork: Sendable {
  private let engine: DiskEngine

  /// Creates the operations of `cache`.
  package init(_ cache: DiskCache) { engine = cache.engine }

  /// Opens an entry and reads its whole body.
  ///
  /// - Returns: The number of bytes in the body, or `nil` for a miss.
  package func read(_ key: CacheKey) throws(CacheError) -> Int? {
    let name = name(key)
    guard !engine.surelyLacks(name), let entry = try engine.open(key, name, nil) else { return nil }
    if let data = entry.body.data { return data.count }
    return try (entry.body.source as? EntryBody)?.readAll()
  }

  /// Stores a body that is in memory.
  package func store(_ body: Data, for key: CacheKey, metadata: StoredMetadata) throws(CacheError) {
    try DiskEntryWriter(key, metadata, engine).writeAndCommit(body)
  }

  /// Appends metadata. Returns `false` if there is no such entry.
  package func updateMetadata(_ key: CacheKey, _ metadata: StoredMetadata) throws(CacheError) -> Bool {
    try engine.updateMetadata(key, name(key), ifRevision: metadata.revision) { _ in metadata }
  }

  /// Removes an entry.
  package func remove(_ key: CacheKey) throws(CacheError) { try engine.remove(key, name(key), ifRevision: nil) }

  /// Lists the files.
  ///
  /// - Returns: The number of entries.
  package func list() throws(CacheError) -> Int {
    try engine.list()
    return engine.index.known.count
  }

  private func name(_ key: CacheKey) -> EntryName { EntryName(key, hashKey: engine.folder.key) }
}
