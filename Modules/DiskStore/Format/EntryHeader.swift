internal import CacheCore

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
