internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// One record of an entry's metadata: a head of 40 bytes and the metadata, padded to whole slots.
struct MetadataRecord: Sendable {
  /// The size of a slot in bytes. A record begins at a slot and fills whole slots.
  static let slot = 512
  static let headLength = 40
  static let magic: UInt32 = 0x524D_5445
  /// The maximum size in bytes of stored metadata. It far exceeds any server's header limit and bounds a reader's memory.
  static let payloadLimit = 4 << 20

  var sequence: UInt64
  var metadata: StoredMetadata

  /// Returns the number of slots for a payload.
  static func slots(payload: Int) -> Int { (headLength + payload + slot - 1) / slot }

  /// Returns the encoded, padded record.
  static func encoded(sequence: UInt64, revision: Revision, payload: Data) -> [UInt8] {
    var writer = ByteWriter()
    encode(sequence: sequence, revision: revision, into: &writer) { $0.raw(payload) }
    return writer.bytes
  }

  /// Writes a padded record.
  ///
  /// - Parameters:
  ///   - revision: The entry's revision. With 128 random bits in every record, header text from a server cannot pose as one.
  ///   - payload: Writes the payload.
  /// - Returns: The size of the payload in bytes.
  @discardableResult
  static func encode(
    sequence: UInt64, revision: Revision, into writer: inout ByteWriter, _ payload: (inout ByteWriter) -> Void
  ) -> Int {
    let start = writer.bytes.count
    writer.integer(magic)
    // The checksum and length of the rest, which are known only at the end.
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

  /// Parses a valid record at the start of `bytes`, or returns `nil` if there is none.
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
