/// Reads what ``ByteWriter`` wrote, in place: valid for as long as the bytes are. Every step can fail, none traps, whatever the bytes.
package struct RawByteReader {
  private var rest: UnsafeRawBufferPointer

  package init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

  /// Bytes that are left.
  package var count: Int { rest.count }

  package var isAtEnd: Bool { rest.isEmpty }

  package mutating func integer<Integer: FixedWidthInteger>(_ type: Integer.Type = Integer.self) -> Integer? {
    raw(MemoryLayout<Integer>.size).map { Integer(littleEndian: $0.loadUnaligned(as: Integer.self)) }
  }

  package mutating func raw(_ count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, count <= rest.count else { return nil }
    defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
    return UnsafeRawBufferPointer(rebasing: rest[..<count])
  }

  package mutating func counted() -> UnsafeRawBufferPointer? {
    guard let count = integer(UInt32.self), let count = Int(exactly: count) else { return nil }
    return raw(count)
  }

  /// The bytes of a text: invalid UTF-8 is nil.
  package mutating func text() -> UnsafeRawBufferPointer? {
    guard let bytes = counted(), bytes.isUTF8 else { return nil }
    return bytes
  }

  /// The bytes of a token (RFC 9110 §5.6.2).
  package mutating func token() -> UnsafeRawBufferPointer? {
    guard let bytes = counted(), !bytes.isEmpty, bytes.allSatisfy(\.isTokenCharacter) else { return nil }
    return bytes
  }
}

extension UnsafeRawBufferPointer {
  /// Whether the bytes are a text.
  package var isUTF8: Bool {
    // Repairing changes every invalid byte, so what is the same was valid.
    allSatisfy { $0 < 0x80 } || utf8Text.utf8.elementsEqual(self)
  }

  /// The bytes as a text, invalid ones repaired.
  package var utf8Text: String { String(decoding: assumingMemoryBound(to: UInt8.self), as: UTF8.self) }
}

extension UInt8 {
  fileprivate var isTokenCharacter: Bool {
    switch self {
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x30...0x39, 0x41...0x5A, 0x5E...0x7A, 0x7C, 0x7E: true
    default: false
    }
  }
}
