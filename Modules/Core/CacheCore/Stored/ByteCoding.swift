internal import CEtagereChecksum

/// A writer of little-endian numbers and length-prefixed texts, which the formats of the stores consist of.
///
/// It is inlinable because other modules pass their own sequences, which unspecialized code would append byte by byte.
@usableFromInline
package struct ByteWriter {
  @usableFromInline package internal(set) var bytes: [UInt8] = []

  @inlinable
  package init() {}

  /// Reserves space for `count` bytes.
  package mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

  @inlinable
  package mutating func integer(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Appends zeros until there are `count` bytes.
  package mutating func zeros(upTo count: Int) {
    if count > bytes.count { bytes.append(contentsOf: [UInt8](repeating: 0, count: count - bytes.count)) }
  }

  /// Overwrites earlier bytes with a number.
  @inlinable
  package mutating func overwrite(_ value: some FixedWidthInteger, at offset: Int) {
    let end = offset + MemoryLayout.size(ofValue: value)
    withUnsafeBytes(of: value.littleEndian) { bytes.replaceSubrange(offset..<end, with: $0) }
  }

  /// Appends raw bytes without a length.
  @inlinable
  package mutating func raw(_ sequence: some Sequence<UInt8>) { bytes.append(contentsOf: sequence) }

  /// Appends bytes after their count (32 bits).
  @inlinable
  package mutating func counted(_ collection: some Collection<UInt8>) {
    integer(UInt32(truncatingIfNeeded: collection.count))
    bytes.append(contentsOf: collection)
  }

  /// Appends UTF-8 after its count of bytes.
  @inlinable
  package mutating func text(_ text: String) { counted(text.utf8) }
}

/// Returns the CRC32C checksum of bytes, or of bytes that follow those with the given checksum.
package func crc32c(_ bytes: UnsafeRawBufferPointer, after checksum: UInt32 = 0) -> UInt32 {
  guard let start = bytes.baseAddress else { return checksum }
  return cchecksum_crc32c(checksum, start, bytes.count)
}

/// A reader for the output of ``ByteWriter`` that copies nothing. It is valid only as long as the bytes are. A read of invalid
/// bytes returns `nil` and never traps.
///
/// It is inlinable because other modules would otherwise call unspecialized generic functions for each number.
@usableFromInline
package struct RawByteReader {
  @usableFromInline var rest: UnsafeRawBufferPointer

  @inlinable
  package init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

  /// The number of remaining bytes.
  package var count: Int { rest.count }

  package var isAtEnd: Bool { rest.isEmpty }

  @inlinable
  package mutating func integer<Integer: FixedWidthInteger>(_ type: Integer.Type = Integer.self) -> Integer? {
    raw(MemoryLayout<Integer>.size).map { Integer(littleEndian: $0.loadUnaligned(as: Integer.self)) }
  }

  @inlinable
  package mutating func raw(_ count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, count <= rest.count else { return nil }
    defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
    return UnsafeRawBufferPointer(rebasing: rest[..<count])
  }

  @inlinable
  package mutating func counted() -> UnsafeRawBufferPointer? {
    guard let count = integer(UInt32.self), let count = Int(exactly: count) else { return nil }
    return raw(count)
  }

  /// Returns the bytes of a text, or `nil` if they are not valid UTF-8.
  package mutating func text() -> UnsafeRawBufferPointer? {
    guard let bytes = counted(), bytes.isUTF8 else { return nil }
    return bytes
  }

  /// Returns the bytes of a token (RFC 9110 §5.6.2), or `nil` if they are not one.
  package mutating func token() -> UnsafeRawBufferPointer? {
    guard let bytes = counted(), bytes.isToken else { return nil }
    return bytes
  }
}

extension UnsafeRawBufferPointer {
  /// Whether the bytes are valid UTF-8.
  package var isUTF8: Bool {
    // Repairing changes every invalid byte, so an equal text was valid.
    isASCII || utf8Text.utf8.elementsEqual(self)
  }

  private var isASCII: Bool {
    var (all, start) = (UInt64(0), 0)
    while start + 8 <= count {
      all |= loadUnaligned(fromByteOffset: start, as: UInt64.self)
      start += 8
    }
    while start < count {
      all |= UInt64(self[start])
      start += 1
    }
    return all & 0x8080_8080_8080_8080 == 0
  }

  /// Whether the bytes are a token (RFC 9110 §5.6.2).
  var isToken: Bool {
    for byte in self where !byte.isTokenByte { return false }
    return !isEmpty
  }

  /// The bytes as a text, with invalid bytes repaired.
  package var utf8Text: String { String(decoding: assumingMemoryBound(to: UInt8.self), as: UTF8.self) }
}
