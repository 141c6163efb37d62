internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

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
      guard 4 * block + 4 < table.count, crc32c(bytes.part(start..<end)) == table.integer(at: 4 * block) else {
        return false
      }
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
