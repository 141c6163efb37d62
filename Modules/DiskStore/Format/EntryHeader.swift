internal import CacheCore

/// The first 128 bytes of an entry's file: what it is, and where its parts lie.
struct EntryHeader: Hashable, Sendable {
  static let length = 128
  static let formatVersion: UInt16 = 1
  /// Begins with a byte above 127 and holds both line ends, so that no text file, and no file mangled as text, is taken for an
  /// entry.
  static let magic: [UInt8] = [0x8B, 0x45, 0x54, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
  private static let magicNumber: UInt64 = 0x0A1A_0A0D_4754_458B
  /// Flags that a reader may ignore; any other unknown one means that it must not read the entry.
  static let ignorableFlags: UInt32 = 0xFFFF_0000

  var revision: Revision
  var storedAt: Timestamp
  var keyOffset: UInt64
  var keyLength: UInt64
  var bodyOffset: UInt64
  var bodyLength: UInt64
  var tableOffset: UInt64
  var metadataOffset: UInt64

  /// The layout of an entry with a key section and a body of these lengths, in bytes.
  init(revision: Revision, storedAt: Timestamp, keyLength: Int, bodyLength: Int64) {
    self.revision = revision
    self.storedAt = storedAt
    keyOffset = UInt64(Self.length)
    self.keyLength = UInt64(keyLength)
    bodyOffset = Self.bodyOffset(keyLength: keyLength)
    self.bodyLength = UInt64(bodyLength)
    tableOffset = (bodyOffset + self.bodyLength).rounded(upTo: 8)
    // Aligned to the sector, so that a record of one slot is written whole or not at all by most devices.
    metadataOffset = (tableOffset + BlockChecksums.tableLength(ofBody: self.bodyLength)).rounded(
      upTo: UInt64(MetadataRecord.slot))
  }

  /// Bytes of the file of an entry with a key section, a body and metadata of these lengths, as it is when it is stored.
  static func fileSize(keyLength: Int, bodyLength: Int64, payload: Int) -> UInt64 {
    let header = EntryHeader(
      revision: Revision(high: 0, low: 0), storedAt: Timestamp(nanoseconds: 0), keyLength: keyLength,
      bodyLength: max(bodyLength, 0))
    return header.metadataOffset + UInt64(MetadataRecord.slots(payload: payload) * MetadataRecord.slot)
  }

  /// Where the body begins: a writer needs to know before it knows how long the body gets.
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
    /// Whole, but of a later format: a miss for us, and not ours to remove.
    case newer
    case damaged(String)
  }

  /// Reads the header of a file of `fileSize` bytes; every offset it states is checked against that size.
  static func parse(_ bytes: UnsafeRawBufferPointer, fileSize: Int64) -> Parsed {
    guard bytes.count >= length else { return .damaged("shorter than a header") }
    guard bytes.integer(at: 0) == magicNumber else { return .damaged("no entry of this store") }
    guard bytes.integer(at: length - 4) == Checksum.of(bytes.part(0..<length - 4)) else { return .damaged("header checksum") }
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

  /// Bytes of a body at most: its table of checksums, which is read as one piece, takes 64 MiB then.
  static let bodyLimit: Int64 = 1 << 40

  /// The parts lie in their order inside the file, no sum overflows, and what is read as one piece has a bound: a file with a
  /// hole states any length.
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
  /// The next multiple of `unit`, which is a power of two; sizes in memory and in files are far from overflowing it.
  func rounded(upTo unit: UInt64) -> UInt64 { (self &+ (unit - 1)) & ~(unit - 1) }
}
