internal import CChecksum
internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The CRC32C checksum of bytes in memory.
enum Checksum {
  static func of(_ bytes: UnsafeRawBufferPointer, goingOnFrom crc: UInt32 = 0) -> UInt32 {
    guard let start = bytes.baseAddress else { return crc }
    return cchecksum_crc32c(crc, start, bytes.count)
  }

  static func of(_ bytes: [UInt8], from start: Int = 0) -> UInt32 { bytes.withUnsafeBytes { of($0.part(start..<$0.count)) } }
}

extension ByteWriter {
  /// Appends the checksum of the bytes written from `start` on.
  mutating func checksum(from start: Int) { integer(Checksum.of(bytes, from: start)) }
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
