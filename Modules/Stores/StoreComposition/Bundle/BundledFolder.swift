internal import CacheCore
internal import Dispatch
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A store for files with a manifest.
final class BundledFolder: CacheStore {
  struct Item: Sendable {
    let key: CacheKey
    let metadata: StoredMetadata
    let name: String
    let length: Int64
  }

  /// The maximum size in bytes of a body that is returned in memory with its entry.
  private static let inMemoryBodyLimit: Int64 = 131_072
  /// The number of bytes that one read of a larger body returns.
  private static let chunkSize: Int64 = 262_144

  let id: ComponentID
  private let root: String
  private let items: [CacheKey: Item]
  private let queue = DispatchQueue(label: "etagere.bundle", qos: .userInitiated)

  init(_ folder: URL, manifest name: String) throws(CacheError) {
    guard folder.isFileURL else {
      throw CacheError(.invalidConfiguration, reason: "the URL of a store's folder is not a file URL", url: folder.absoluteString)
    }
    root = folder.path(percentEncoded: false)
    let file = try BundledFile(name, in: root, said: root)
    let path = file.path
    id = ComponentID(BundledFolder.self, parameters: path)
    var items: [CacheKey: Item] = [:]
    for entry in try Manifest(file.read(0..<file.size), path).entries {
      let item = try Self.item(entry, in: root, manifest: path)
      guard items.updateValue(item, forKey: item.key) == nil else {
        throw CacheError(.invalidConfiguration, reason: "the manifest names a resource twice: \(item.key)", path: path)
      }
    }
    self.items = items
  }

  private static func item(_ entry: Manifest.Entry, in root: String, manifest: String) throws(CacheError) -> Item {
    let file = try BundledFile(entry.file, in: root, said: manifest)
    let (request, resource, response) = try entry.heads(manifest)
    let stated = response.headerFields[.date].flatMap { HTTPDate($0, receivedAt: file.modified) }?.timestamp
    let created = stated ?? file.modified
    let freshness = Freshness(generatedAt: created, freshUntil: created + .seconds(max(0, entry.freshFor ?? 0)))
    let metadata = StoredMetadata(
      request: request, response: response, requestTime: created, responseTime: created, bodyLength: file.size,
      revision: revision(entry, file), freshness: freshness)
    return Item(key: CacheKey(resource: resource), metadata: metadata, name: entry.file, length: file.size)
  }

  /// Returns a revision that stays the same while the file does, so that transforms of it stay valid after a restart.
  private static func revision(_ entry: Manifest.Entry, _ file: BundledFile) -> Revision {
    let text = "\(entry.url)\n\(entry.file)\n\(file.size)\n\(file.modified.nanoseconds)"
    let (high, low) = SipHash.digest(text, key: SipHash.Key(first: 0, second: 0))
    return Revision(high: high, low: low)
  }

  // MARK: Reading

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] {
    try await entry(for: CacheKey(resource: resource), range: nil).map { [$0] } ?? []
  }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    guard let item = items[key] else { return nil }
    let wanted = (range ?? 0..<item.length).clamped(to: 0..<item.length)
    return try await run { [self] () throws(CacheError) in
      let file = try BundledFile(item.name, in: root, said: root)
      guard file.size == item.length else {
        throw CacheError(.damagedEntry, reason: "the file's length has changed since the store was created", path: file.path)
      }
      return StoredEntry(key: item.key, metadata: item.metadata, body: try body(of: file, wanted))
    }
  }

  private func body(of file: BundledFile, _ range: Range<Int64>) throws(CacheError) -> ResourceBody {
    if range.count <= Self.inMemoryBodyLimit { return ResourceBody(try file.read(range)) }
    let source = ChunkedBody(range, trailers: nil) { [self] start throws(CacheError) in
      let end = min(range.upperBound, start + Self.chunkSize)
      return [try await run { () throws(CacheError) in try file.read(start..<end) }]
    }
    return ResourceBody(length: Int64(range.count), source: source)
  }

  func entries(
    where isWanted: @escaping @Sendable (CacheKey, StoredMetadata) -> Bool
  ) async throws(CacheError) -> [ListedEntry] {
    items.values.filter { isWanted($0.key, $0.metadata) }.map { ListedEntry(key: $0.key, metadata: $0.metadata) }
  }

  /// Runs blocking work on the store's thread.
  private func run<Value: Sendable>(
    _ work: @escaping @Sendable () throws(CacheError) -> Value
  ) async throws(CacheError) -> Value {
    let result: Result<Value, CacheError> = await withResumption { continuation in
      queue.async { continuation.resume(returning: Result(catching: work)) }
    }
    return try result.get()
  }

  // MARK: Writing

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    throw ReadOnlyStore.refusal
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    throw ReadOnlyStore.refusal
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) { throw ReadOnlyStore.refusal }

  func removeAll() async throws(CacheError) { throw ReadOnlyStore.refusal }
}
