#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// An entry that is intact apart from its body, which is not checked here.
struct EntryRow: Sendable {
  let id: Int64
  let key: CacheKey
  let metadata: StoredMetadata
  let length: Int64

  static let columns = "id, resource, variant, transform, metadata, revision, length, checksum"

  /// Decodes a row, or returns `nil` if it is damaged.
  init?(_ row: Row) {
    guard let id = row.integer(0), ChunkTable.entries.contains(id), let resource = row.data(1), let variant = row.data(2),
      let transform = row.data(3), let payload = row.data(4), let tag = row.data(5), let length = row.integer(6),
      (0...ChunkTable.bodyLimit).contains(length),
      let resource = String(validating: resource, as: UTF8.self), let variant = String(validating: variant, as: UTF8.self),
      let transform = String(validating: transform, as: UTF8.self), let revision = Self.revision(tag)
    else { return nil }
    let key = CacheKey(resource: resource, variant: variant, transform: transform)
    guard row.integer(7) == Self.checksum(key, payload, revision, length),
      let metadata = StoredMetadata(decoding: payload), metadata.revision == revision, metadata.bodyLength == length
    else { return nil }
    self.id = id
    self.key = key
    self.metadata = metadata
    self.length = length
  }

  static func checksum(_ key: CacheKey, _ payload: Data, _ revision: Revision, _ length: Int64) -> Int64 {
    var checksum = Checksum()
    for text in [key.resource, key.variant, key.transform] {
      checksum.add(Int64(text.utf8.count))
      checksum.add(Data(text.utf8))
    }
    checksum.add(revision)
    checksum.add(length)
    checksum.add(payload)
    return Int64(checksum.value)
  }

  static func tag(_ revision: Revision) -> Data {
    var writer = ByteWriter()
    writer.integer(revision.high)
    writer.integer(revision.low)
    return Data(writer.bytes)
  }

  private static func revision(_ tag: Data) -> Revision? {
    tag.withUnsafeBytes { bytes in
      var reader = RawByteReader(bytes)
      guard bytes.count == 16, let high = reader.integer(UInt64.self), let low = reader.integer(UInt64.self) else { return nil }
      return Revision(high: high, low: low)
    }
  }
}
#endif
