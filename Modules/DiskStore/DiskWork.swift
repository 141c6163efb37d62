package import CacheCore

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// What a disk cache's calls do in their lanes, done in the caller's thread: the work without the way to the executor and back.
///
/// For measuring it. The order that the lanes keep among the calls for one resource is the caller's to keep.
package struct DiskWork: Sendable {
  private let engine: DiskEngine

  /// The work of `cache`.
  package init(_ cache: DiskCache) { engine = cache.engine }

  /// Opens an entry and reads all of its body.
  ///
  /// - Returns: bytes of the body; nil: a miss.
  package func read(_ key: CacheKey) throws(CacheError) -> Int? {
    let name = name(key)
    guard !engine.surelyLacks(name), let entry = try engine.open(key, name, nil) else { return nil }
    if let data = entry.body.data { return data.count }
    return try (entry.body.source as? EntryBody)?.readAll()
  }

  /// Stores a body that is at hand.
  package func store(_ body: Data, for key: CacheKey, metadata: StoredMetadata) throws(CacheError) {
    try DiskEntryWriter(key, metadata, engine).writeAndCommit(body)
  }

  /// Appends metadata; false when there is no such entry.
  package func refresh(_ key: CacheKey, _ metadata: StoredMetadata) throws(CacheError) -> Bool {
    try engine.refresh(key, name(key), metadata, ifRevision: metadata.revision)
  }

  /// Removes an entry.
  package func remove(_ key: CacheKey) throws(CacheError) { try engine.remove(key, name(key), ifRevision: nil) }

  /// Lists the files.
  ///
  /// - Returns: how many entries there are.
  package func list() throws(CacheError) -> Int {
    try engine.list()
    return engine.index.known.count
  }

  private func name(_ key: CacheKey) -> EntryName { EntryName(key, hashKey: engine.folder.key) }
}
