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
  static func encoded(sequence: UInt64, revision: Revision, payload: Data) -> [UInt8] {
    var writer = ByteWriter()
    encode(sequence: sequence, revision: revision, into: &writer) { $0.raw(payload) }
    return writer.bytes
  }

  /// Writes a record, padded.
  ///
  /// - Parameters:
  ///   - revision: the entry's. It stands in every record, so that no header text of a server's can pose as one: the server would
  ///     have to guess 128 random bits.
  ///   - payload: writes the payload.
  /// - Returns: bytes of the payload.
  @discardableResult
  static func encode(
    sequence: UInt64, revision: Revision, into writer: inout ByteWriter, _ payload: (inout ByteWriter) -> Void
  ) -> Int {
    let start = writer.bytes.count
    writer.integer(magic)
    // Of what follows: its checksum and its length, which are known at the end.
    writer.zeros(upTo: start + 16)
    writer.integer(sequence)
    writer.integer(revision.high)
    writer.integer(revision.low)
    payload(&writer)
    let count = writer.bytes.count - start - headLength
    writer.overwrite(UInt32(truncatingIfNeeded: count), at: start + 8)
    writer.overwrite(Checksum.of(writer.bytes, from: start + 8), at: start + 4)
    writer.zeros(upTo: start + slots(payload: count) * slot)
    return count
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
