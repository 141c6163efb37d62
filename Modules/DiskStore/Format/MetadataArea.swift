internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The end of an entry's file: a log of metadata records, in which the valid record with the highest sequence is current.
///
/// A 304 appends a record and changes nothing else. When the log would exceed its bound, writing continues at its start but never
/// over the newest valid record. One intact record therefore always exists, and a torn record is not mistaken for it.
struct MetadataArea {
  /// The maximum number of slots, unless four records of the entry need more.
  static let slotBound = 64
  /// The maximum size in bytes that an area can reach with the largest records.
  static let lengthLimit = 8 * (MetadataRecord.payloadLimit + MetadataRecord.slot)

  /// The maximum number of bytes in records with wrong checksums, unless four times the area is more. An area beyond it is
  /// damaged.
  ///
  /// Each append can leave one torn record, which the next one overwrites. Records that claim each other's bytes would be
  /// checksummed over and over. An area within ``slotBound`` never reaches this limit.
  static let vainLimit = 2 << 20

  /// The newest valid record.
  struct Newest {
    var firstSlot: Int
    var slots: Int
    var sequence: UInt64
    /// The payload's range in bytes from the start of the area.
    var payload: Range<Int>
  }

  /// The location of the next record.
  struct RecordLocation: Equatable {
    var firstSlot: Int
    var sequence: UInt64
    /// Whether earlier records must be flushed before this one is written. Otherwise a power failure could lose both them and
    /// this one.
    var wantsBarrier: Bool
  }

  /// Returns the newest valid record, or `nil` if there is none or more records seem torn than appends can tear; see
  /// ``vainLimit``.
  ///
  /// The time is linear in the area's length, whatever the records claim.
  static func newest(in area: UnsafeRawBufferPointer, revision: Revision) -> Newest? {
    var best: Newest?
    var slot = 0
    var vain = 0
    while slot * MetadataRecord.slot + MetadataRecord.headLength <= area.count {
      let start = slot * MetadataRecord.slot
      guard let found = MetadataRecord.parse(area.part(start..<area.count), revision: revision) else {
        vain += claimed(by: area.part(start..<area.count), revision)
        guard vain <= max(4 * area.count, vainLimit) else { return nil }
        slot += 1
        continue
      }
      let slots = MetadataRecord.slots(payload: found.payload.count)
      if best.map({ $0.sequence < found.sequence }) ?? true {
        let payload = start + found.payload.lowerBound..<start + found.payload.upperBound
        best = Newest(firstSlot: slot, slots: slots, sequence: found.sequence, payload: payload)
      }
      slot += slots
    }
    return best
  }

  /// Returns the number of bytes that were checksummed to find that a slot begins no valid record.
  private static func claimed(by slot: UnsafeRawBufferPointer, _ revision: Revision) -> Int {
    guard slot.integer(at: 0) == MetadataRecord.magic, slot.integer(at: 24) == revision.high,
      slot.integer(at: 32) == revision.low
    else { return 0 }
    let length = Int(clamping: slot.integer(at: 8, as: UInt32.self))
    return length <= min(MetadataRecord.payloadLimit, slot.count - MetadataRecord.headLength) ? length : 0
  }

  /// Returns the location of a record of `slots` slots after `newest`, in an area that now has `areaSlots` slots.
  static func place(slots: Int, after newest: Newest, areaSlots: Int) -> RecordLocation {
    let bound = max(slotBound, 4 * slots)
    let behind = newest.firstSlot + newest.slots
    let wraps = behind + slots > bound && slots <= newest.firstSlot
    let first = wraps ? 0 : behind
    // One half of the log is flushed before the other half is overwritten.
    let changesHalf = first / (bound / 2) != newest.firstSlot / (bound / 2)
    return RecordLocation(firstSlot: first, sequence: newest.sequence &+ 1, wantsBarrier: first < areaSlots && changesHalf)
  }
}

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
    let checksum = writer.bytes.withUnsafeBytes { crc32c($0.part((start + 8)..<$0.count)) }
    writer.overwrite(checksum, at: start + 4)
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
      bytes.integer(at: 4) == crc32c(bytes.part(8..<headLength + length))
    else { return nil }
    return (bytes.integer(at: 16), headLength..<headLength + length)
  }
}
