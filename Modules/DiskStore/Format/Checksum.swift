internal import CChecksum

/// CRC32C of bytes in memory.
enum Checksum {
  static func of(_ bytes: UnsafeRawBufferPointer, goingOnFrom crc: UInt32 = 0) -> UInt32 {
    guard let start = bytes.baseAddress else { return crc }
    return cchecksum_crc32c(crc, start, bytes.count)
  }

  static func of(_ bytes: [UInt8]) -> UInt32 { bytes.withUnsafeBytes { of($0) } }
}

extension UnsafeRawBufferPointer {
  /// The little-endian integer at `offset`, which the caller knows to lie inside.
  func integer<Integer: FixedWidthInteger>(at offset: Int, as type: Integer.Type = Integer.self) -> Integer {
    Integer(littleEndian: loadUnaligned(fromByteOffset: offset, as: Integer.self))
  }

  /// The bytes of `range`, which the caller knows to lie inside, counted from zero again.
  func part(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[range]) }
}
