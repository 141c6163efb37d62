internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One record of an entry's metadata: a head of 40 bytes, then the metadata, padded to whole slots.
struct MetadataRecord: Sendable {
  /// Bytes; a record takes whole slots and begins at one.
  static let slot = 512
  static let headLength = 40
  static let magic: UInt32 = 0x524D_5445
  /// Bytes of metadata that are stored at most: far above any server's limit for a head, and it bounds what a reader must hold.
  static let payloadLimit = 4 << 20

  var sequence: UInt64
  var metadata: StoredMetadata

  /// The slots that the record takes.
  static func slots(payload: Int) -> Int { (headLength + payload + slot - 1) / slot }

  /// The record as it is written, padded.
  ///
  /// - Parameter revision: the entry's. It stands in every record, so that no header text of a server's can pose as one: the server would have to
  ///   guess 128 random bits.
  static func encoded(sequence: UInt64, revision: Revision, payload: Data) -> [UInt8] {
    var covered = ByteWriter()
    covered.integer(UInt32(payload.count))
    covered.integer(UInt32(0))
    covered.integer(sequence)
    covered.integer(revision.high)
    covered.integer(revision.low)
    covered.raw(payload)
    var writer = ByteWriter()
    writer.integer(magic)
    writer.integer(Checksum.of(covered.bytes))
    writer.raw(covered.bytes)
    writer.raw(repeatElement(0, count: slots(payload: payload.count) * slot - writer.bytes.count))
    return writer.bytes
  }

  /// What a valid record at the start of `bytes` says of itself, or nil when there is none.
  static func parse(_ bytes: UnsafeRawBufferPointer, revision: Revision) -> (sequence: UInt64, payload: Range<Int>)? {
    guard bytes.count >= headLength, bytes.integer(at: 0) == magic, bytes.integer(at: 24) == revision.high,
      bytes.integer(at: 32) == revision.low
    else { return nil }
    guard let length = Int(exactly: bytes.integer(at: 8, as: UInt32.self)), length <= payloadLimit,
      headLength + length <= bytes.count,
      bytes.integer(at: 4) == Checksum.of(bytes.part(8..<headLength + length))
    else { return nil }
    return (bytes.integer(at: 16), headLength..<headLength + length)
  }
}
