#if Redis
internal import CChecksum
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The stored form of an entry without its body: a head that a 304 leaves unchanged, and the key with the metadata.
///
/// | offset | bytes | content |
/// | --- | --- | --- |
/// | 0 | 4 | `ETR1` |
/// | 4 | 1 | `I` if the body is in the same key, `C` if its chunks are in a key of their own |
/// | 5 | 16 | identifier of the body |
/// | 21 | 16 | revision |
/// | 37 | 8 | length of the body |
/// | 45 | 4 | CRC32C of a body in the same key |
/// | 49 | 8 | time at which the body was stored |
/// | 57 | 4 | CRC32C of the bytes before |
/// | 61 | 4 | CRC32C of the revision and the bytes after |
/// | 65 | | resource, variant, transform and metadata, each after its count of bytes (32 bits) |
///
/// Numbers are little-endian.
struct EntryRecord: Sendable {
  static let magic = "ETR1"
  static let headSize = 61
  /// The position of the revision in the record, counted from one, as Lua does.
  static let revisionPosition = 22
  /// The maximum size in bytes of the key and the metadata.
  static let restLimit = 64 << 20

  let key: CacheKey
  let metadata: StoredMetadata
  let bodyID: String
  let isChunked: Bool
  let length: Int64
  let bodyChecksum: UInt32
  let storedAt: Timestamp

  // MARK: Encoding

  static func head(
    bodyID: String, isChunked: Bool, revision: Revision, length: Int64, bodyChecksum: UInt32, storedAt: Timestamp
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.raw(magic.utf8)
    writer.integer(UInt8(ascii: isChunked ? "C" : "I"))
    writer.raw(bodyID.utf8)
    writer.raw(Self.bytes(of: revision))
    writer.integer(length)
    writer.integer(bodyChecksum)
    writer.integer(storedAt.nanoseconds)
    writer.integer(writer.bytes.withUnsafeBytes { Self.checksum($0) })
    return writer.bytes
  }

  /// - Throws: `CacheError.Code.entryTooLarge` if the key and the metadata exceed the limit.
  static func rest(_ key: CacheKey, _ metadata: StoredMetadata) throws(CacheError) -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(UInt32(0))
    writer.text(key.resource)
    writer.text(key.variant)
    writer.text(key.transform)
    writer.counted(metadata.encoded())
    guard writer.bytes.count <= restLimit else {
      throw CacheError(.entryTooLarge, reason: "the key and the metadata are larger than \(restLimit) bytes")
    }
    writer.overwrite(
      writer.bytes.withUnsafeBytes { checksum(UnsafeRawBufferPointer(rebasing: $0[4...]), after: metadata.revision) }, at: 0)
    return writer.bytes
  }

  static func bytes(of revision: Revision) -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(revision.high)
    writer.integer(revision.low)
    return writer.bytes
  }

  // MARK: Decoding

  enum Decoded {
    case entry(EntryRecord)
    case damaged
    /// A record of another schema or of another program.
    case foreign
  }

  static func decode(_ data: Data) -> Decoded { data.withUnsafeBytes { decode($0) } }

  private static func decode(_ bytes: UnsafeRawBufferPointer) -> Decoded {
    guard bytes.starts(with: magic.utf8) else { return .foreign }
    guard bytes.count > headSize + 4 else { return .damaged }
    var head = RawByteReader(UnsafeRawBufferPointer(rebasing: bytes[4..<headSize]))
    guard let kind = head.integer(UInt8.self), kind == UInt8(ascii: "C") || kind == UInt8(ascii: "I"),
      let bodyID = head.raw(16), let high = head.integer(UInt64.self), let low = head.integer(UInt64.self),
      let length = head.integer(Int64.self), length >= 0, let bodyChecksum = head.integer(UInt32.self),
      let storedAt = head.integer(Int64.self),
      head.integer(UInt32.self) == checksum(UnsafeRawBufferPointer(rebasing: bytes[..<(headSize - 4)]))
    else { return .damaged }
    let revision = Revision(high: high, low: low)
    var rest = RawByteReader(UnsafeRawBufferPointer(rebasing: bytes[headSize...]))
    let expected = checksum(UnsafeRawBufferPointer(rebasing: bytes[(headSize + 4)...]), after: revision)
    guard rest.integer(UInt32.self) == expected, let resource = rest.text(), let variant = rest.text(),
      let transform = rest.text(), let encoded = rest.counted(), rest.isAtEnd,
      var metadata = StoredMetadata(decoding: encoded), metadata.revision == revision
    else { return .damaged }
    if metadata.bodyLength != length { metadata.bodyLength = length }
    return .entry(
      EntryRecord(
        key: CacheKey(resource: resource.utf8Text, variant: variant.utf8Text, transform: transform.utf8Text),
        metadata: metadata, bodyID: bodyID.utf8Text, isChunked: kind == UInt8(ascii: "C"), length: length,
        bodyChecksum: bodyChecksum, storedAt: Timestamp(nanoseconds: storedAt)))
  }

  // MARK: Checksums

  static func checksum(_ bytes: UnsafeRawBufferPointer, from start: UInt32 = 0) -> UInt32 {
    guard let address = bytes.baseAddress else { return start }
    return cchecksum_crc32c(start, address, bytes.count)
  }

  static func checksum(_ data: Data) -> UInt32 { data.withUnsafeBytes { checksum($0) } }

  private static func checksum(_ bytes: UnsafeRawBufferPointer, after revision: Revision) -> UInt32 {
    withUnsafeBytes(of: (revision.high.littleEndian, revision.low.littleEndian)) { checksum(bytes, from: checksum($0)) }
  }
}
#endif
