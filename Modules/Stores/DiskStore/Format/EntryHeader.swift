internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The first 128 bytes of an entry's file, which describe the entry and the locations of its parts.
struct EntryHeader: Hashable, Sendable {
  static let length = 128
  static let formatVersion: UInt16 = 1
  /// The magic bytes start with a byte above 127 and contain both kinds of line end. No text file, and no file that was converted
  /// as text, matches them.
  static let magic: [UInt8] = [0x8B, 0x45, 0x54, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
  private static let magicNumber: UInt64 = 0x0A1A_0A0D_4754_458B
  /// The flags that a reader may ignore. A reader must not read an entry with any other unknown flag.
  static let ignorableFlags: UInt32 = 0xFFFF_0000

  var revision: Revision
  var storedAt: Timestamp
  var keyOffset: UInt64
  var keyLength: UInt64
  var bodyOffset: UInt64
  var bodyLength: UInt64
  var tableOffset: UInt64
  var metadataOffset: UInt64

  /// Creates the layout of an entry with a key section and a body of these lengths in bytes.
  init(revision: Revision, storedAt: Timestamp, keyLength: Int, bodyLength: Int64) {
    self.revision = revision
    self.storedAt = storedAt
    keyOffset = UInt64(Self.length)
    self.keyLength = UInt64(keyLength)
    bodyOffset = Self.bodyOffset(keyLength: keyLength)
    self.bodyLength = UInt64(bodyLength)
    tableOffset = (bodyOffset + self.bodyLength).rounded(upTo: 8)
    // The area starts at a sector boundary, so most devices write a record of one slot completely or not at all.
    metadataOffset = (tableOffset + BlockChecksums.tableLength(ofBody: self.bodyLength)).rounded(
      upTo: UInt64(MetadataRecord.slot))
  }

  /// Returns the initial size in bytes of an entry's file with a key section, a body and metadata of these lengths.
  static func fileSize(keyLength: Int, bodyLength: Int64, payload: Int) -> UInt64 {
    let header = EntryHeader(
      revision: Revision(high: 0, low: 0), storedAt: Timestamp(nanoseconds: 0), keyLength: keyLength,
      bodyLength: max(bodyLength, 0))
    return header.metadataOffset + UInt64(MetadataRecord.slots(payload: payload) * MetadataRecord.slot)
  }

  /// Returns the offset of the body, which a writer needs before it knows the body's length.
  static func bodyOffset(keyLength: Int) -> UInt64 { UInt64(length + keyLength).rounded(upTo: 16) }

  var tableLength: UInt64 { BlockChecksums.tableLength(ofBody: bodyLength) }

  func encoded() -> [UInt8] {
    var writer = ByteWriter()
    encode(into: &writer)
    return writer.bytes
  }

  func encode(into writer: inout ByteWriter) {
    let start = writer.bytes.count
    writer.raw(Self.magic)
    writer.integer(Self.formatVersion)
    writer.integer(UInt16(Self.length))
    writer.integer(UInt32(0))
    writer.integer(revision.high)
    writer.integer(revision.low)
    writer.integer(storedAt.nanoseconds)
    writer.integer(keyOffset)
    writer.integer(keyLength)
    writer.integer(bodyOffset)
    writer.integer(bodyLength)
    writer.integer(tableOffset)
    writer.integer(metadataOffset)
    writer.integer(UInt32(BlockChecksums.blockSize))
    writer.integer(UInt32(MetadataRecord.slot))
    writer.zeros(upTo: start + Self.length - 4)
    writer.checksum(from: start)
  }

  enum Parsed {
    case header(EntryHeader)
    /// An intact entry of a later format, which is a miss and must not be removed.
    case newer
    case damaged(String)
  }

  /// Parses the header of a file of `fileSize` bytes and checks every offset against that size.
  static func parse(_ bytes: UnsafeRawBufferPointer, fileSize: Int64) -> Parsed {
    guard bytes.count >= length else { return .damaged("shorter than a header") }
    guard bytes.integer(at: 0) == magicNumber else { return .damaged("not an entry file") }
    guard bytes.integer(at: length - 4) == crc32c(bytes.part(0..<length - 4)) else { return .damaged("header checksum") }
    let version = bytes.integer(at: 8, as: UInt16.self)
    guard version <= formatVersion else { return .newer }
    guard version == formatVersion else { return .damaged("an older format") }
    guard bytes.integer(at: 12, as: UInt32.self) & ~ignorableFlags == 0 else { return .newer }
    guard let header = EntryHeader(parsing: bytes), header.fits(fileSize: fileSize) else { return .damaged("impossible header") }
    return .header(header)
  }

  private init?(parsing bytes: UnsafeRawBufferPointer) {
    guard bytes.integer(at: 10, as: UInt16.self) == UInt16(Self.length),
      bytes.integer(at: 88, as: UInt32.self) == UInt32(BlockChecksums.blockSize),
      bytes.integer(at: 92, as: UInt32.self) == UInt32(MetadataRecord.slot)
    else { return nil }
    revision = Revision(high: bytes.integer(at: 16), low: bytes.integer(at: 24))
    storedAt = Timestamp(nanoseconds: bytes.integer(at: 32))
    keyOffset = bytes.integer(at: 40)
    keyLength = bytes.integer(at: 48)
    bodyOffset = bytes.integer(at: 56)
    bodyLength = bytes.integer(at: 64)
    tableOffset = bytes.integer(at: 72)
    metadataOffset = bytes.integer(at: 80)
  }

  /// The maximum size of a body in bytes. Its checksum table, which is read at once, then has 64 MiB.
  static let bodyLimit: Int64 = 1 << 40

  /// Whether the parts are in order inside the file without overflow, and whether each part that is read at once has a bounded
  /// size. A sparse file can state any length.
  private func fits(fileSize: Int64) -> Bool {
    let size = UInt64(clamping: fileSize)
    guard bodyLength <= min(size, UInt64(Self.bodyLimit)), keyLength <= UInt64(KeySection.lengthLimit) else { return false }
    let (keyEnd, a) = keyOffset.addingReportingOverflow(keyLength)
    let (bodyEnd, b) = bodyOffset.addingReportingOverflow(bodyLength)
    let (tableEnd, c) = tableOffset.addingReportingOverflow(BlockChecksums.tableLength(ofBody: bodyLength))
    guard !a, !b, !c else { return false }
    return keyOffset >= UInt64(Self.length) && keyEnd <= bodyOffset && bodyEnd <= tableOffset && tableEnd <= metadataOffset
      && metadataOffset < size
  }
}

extension UInt64 {
  /// Returns the next multiple of `unit`, a power of two. Sizes in memory and in files are too small to overflow.
  func rounded(upTo unit: UInt64) -> UInt64 { (self &+ (unit - 1)) & ~(unit - 1) }
}

/// The full key in an entry's file: three length-prefixed texts and a checksum.
///
/// A file name is only a hash, so readers compare this key with the requested one.
enum KeySection {
  /// The maximum size of a stored key in bytes, because every read loads and compares it.
  static let keyLimit = 64 << 20
  /// The maximum size of a section in bytes.
  static let lengthLimit = keyLimit + 16

  /// Returns the size in bytes of a key's section.
  static func length(_ key: CacheKey) -> Int { key.resource.utf8.count + key.variant.utf8.count + key.transform.utf8.count + 16 }

  static func encode(_ key: CacheKey, into writer: inout ByteWriter) {
    let start = writer.bytes.count
    writer.text(key.resource)
    writer.text(key.variant)
    writer.text(key.transform)
    writer.checksum(from: start)
  }

  /// Returns the key in a section, or `nil` if the section is damaged.
  static func key(in section: UnsafeRawBufferPointer) -> CacheKey? {
    guard let (resource, variant, transform) = texts(in: section), resource.isUTF8, variant.isUTF8, transform.isUTF8 else {
      return nil
    }
    return CacheKey(resource: resource.utf8Text, variant: variant.utf8Text, transform: transform.utf8Text)
  }

  /// Whether a section is intact and contains `key`.
  static func holds(_ key: CacheKey, _ section: UnsafeRawBufferPointer) -> Bool {
    guard section.count == length(key), let (resource, variant, transform) = texts(in: section) else { return false }
    return resource.isText(key.resource) && variant.isText(key.variant) && transform.isText(key.transform)
  }

  private typealias Bytes = UnsafeRawBufferPointer

  private static func texts(in section: Bytes) -> (resource: Bytes, variant: Bytes, transform: Bytes)? {
    let end = section.count - 4
    guard end >= 0, section.integer(at: end) == crc32c(section.part(0..<end)) else { return nil }
    var reader = RawByteReader(section.part(0..<end))
    guard let resource = reader.counted(), let variant = reader.counted(), let transform = reader.counted(), reader.isAtEnd else {
      return nil
    }
    return (resource, variant, transform)
  }
}

/// The checksum of each 64 KiB block of a body, computed as the bytes arrive.
///
/// With one checksum per block, streams, ranges and mapped reads can be checked without reading other parts of the body.
struct BlockChecksums: Sendable {
  /// The size of a block in bytes.
  static let blockSize = 65_536

  private var full: [UInt32] = []
  private var current: UInt32 = 0
  private var filled = 0

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes
    while !rest.isEmpty {
      let count = min(Self.blockSize - filled, rest.count)
      current = crc32c(rest.part(0..<count), after: current)
      filled += count
      if filled == Self.blockSize {
        full.append(current)
        (current, filled) = (0, 0)
      }
      rest = rest.part(count..<rest.count)
    }
  }

  /// Writes the table: one checksum per block, followed by one over the table itself.
  func encode(into writer: inout ByteWriter) {
    let start = writer.bytes.count
    for checksum in full { writer.integer(checksum) }
    if filled > 0 { writer.integer(current) }
    writer.checksum(from: start)
  }

  /// Returns the size in bytes of the table for a body of `length` bytes.
  static func tableLength(ofBody length: UInt64) -> UInt64 {
    (length / UInt64(blockSize) + (length % UInt64(blockSize) == 0 ? 0 : 1)) * 4 + 4
  }

  /// Whether a table matches its checksum.
  static func isWhole(table: UnsafeRawBufferPointer) -> Bool {
    let end = table.count - 4
    return end >= 0 && end % 4 == 0 && table.integer(at: end) == crc32c(table.part(0..<end))
  }

  /// Whether `bytes`, which begin with block `first` and consist of whole blocks (except at the body's end), match the table.
  static func match(_ bytes: UnsafeRawBufferPointer, table: UnsafeRawBufferPointer, from first: Int = 0) -> Bool {
    var block = first
    var start = 0
    while start < bytes.count {
      let end = min(start + blockSize, bytes.count)
      guard 4 * block + 4 < table.count, crc32c(bytes.part(start..<end)) == table.integer(at: 4 * block) else { return false }
      (block, start) = (block + 1, end)
    }
    return true
  }
}

extension ByteWriter {
  /// Appends the checksum of the bytes written from `start` on.
  mutating func checksum(from start: Int) { integer(bytes.withUnsafeBytes { crc32c($0.part(start..<$0.count)) }) }
}

extension UnsafeRawBufferPointer {
  /// Returns the little-endian integer at `offset`, which must be in bounds.
  func integer<Integer: FixedWidthInteger>(at offset: Int, as type: Integer.Type = Integer.self) -> Integer {
    Integer(littleEndian: loadUnaligned(fromByteOffset: offset, as: Integer.self))
  }

  /// Returns the bytes of `range`, which must be in bounds, with indices from zero.
  func part(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[range]) }

  /// Whether the bytes are the UTF-8 encoding of a text.
  func isText(_ text: String) -> Bool {
    text.utf8.withContiguousStorageIfAvailable { text in
      guard text.count == count, let one = text.baseAddress, let other = baseAddress else { return text.isEmpty && isEmpty }
      return memcmp(one, other, count) == 0
    } ?? text.utf8.elementsEqual(self)
  }
}

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
