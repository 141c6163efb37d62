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
    // A bit mask of the allowed characters below 64 and one of those from 64 on, because every field name is checked on each
    // read.
    let allowed: (UInt64, UInt64) = (0x03FF_6CFA_0000_0000, 0x57FF_FFFF_C7FF_FFFE)
    for byte in self {
      let word = byte < 64 ? allowed.0 : allowed.1
      guard byte < 128, word &>> UInt64(byte & 63) & 1 == 1 else { return false }
    }
    return !isEmpty
  }

  /// The bytes as a text, with invalid bytes repaired.
  package var utf8Text: String { String(decoding: assumingMemoryBound(to: UInt8.self), as: UTF8.self) }
}
