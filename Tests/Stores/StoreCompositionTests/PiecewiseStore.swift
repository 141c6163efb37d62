import CacheCore
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A store with one entry under every key. Its bodies are returned in pieces, which are counted.
final class PiecewiseStore: CacheStore {
  static let piece = Data(repeating: 7, count: 1_000)

  let id = ComponentID.unique(PiecewiseStore.self)
  private let pieces: Int
  private let revision = Revision.random()
  private let counted = Lock(0)

  init(pieces: Int) { self.pieces = pieces }

  /// The number of pieces returned to all readers together.
  var handedOut: Int { counted.withLock { $0 } }

  func variants(of resource: String) async throws(CacheError) -> [StoredEntry] { [] }

  func entry(for key: CacheKey, range: Range<Int64>?) async throws(CacheError) -> StoredEntry? {
    var stored = metadata(revision: revision)
    stored.bodyLength = Int64(pieces * Self.piece.count)
    return StoredEntry(key: key, metadata: stored, body: ResourceBody(length: stored.bodyLength, source: Source(self)))
  }

  func makeWriter(for key: CacheKey, metadata: StoredMetadata) async throws(CacheError) -> any EntryWriter {
    throw CacheError(.readOnly, reason: "the store accepts no entries")
  }

  func updateMetadata(of key: CacheKey, to metadata: StoredMetadata, ifRevision: Revision) async throws(CacheError) -> Bool {
    false
  }

  func remove(_ key: CacheKey, ifRevision: Revision?) async throws(CacheError) {}

  func removeAll() async throws(CacheError) {}

  private final class Source: ResourceBody.Source {
    private let store: PiecewiseStore
    private let left: Lock<Int>

    init(_ store: PiecewiseStore) {
      self.store = store
      left = Lock(store.pieces)
    }

    func next() async throws(CacheError) -> Data? {
      let isLeft = left.withLock { left in
        defer { left = max(0, left - 1) }
        return left > 0
      }
      guard isLeft else { return nil }
      store.counted.withLock { $0 += 1 }
      return PiecewiseStore.piece
    }

    func cancel() {}

    var trailers: HTTPFields? { nil }
  }
}
