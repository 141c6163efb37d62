/// Appends numbers (little-endian) and length-prefixed texts: what the stores' formats are made of.
///
/// Inlinable: other modules call it with sequences of their own, which would be walked byte by byte, unspecialised, otherwise.
@usableFromInline
package struct ByteWriter {
  @usableFromInline package internal(set) var bytes: [UInt8] = []

  @inlinable
  package init() {}

  /// Makes room for so many bytes.
  package mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

  @inlinable
  package mutating func integer(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Zeros until there are `count` bytes.
  package mutating func zeros(upTo count: Int) {
    if count > bytes.count { bytes.append(contentsOf: [UInt8](repeating: 0, count: count - bytes.count)) }
  }

  /// Puts a number over bytes that were written before.
  @inlinable
  package mutating func overwrite(_ value: some FixedWidthInteger, at offset: Int) {
    let end = offset + MemoryLayout.size(ofValue: value)
    withUnsafeBytes(of: value.littleEndian) { bytes.replaceSubrange(offset..<end, with: $0) }
  }

  /// Raw bytes, without a length.
  @inlinable
  package mutating func raw(_ sequence: some Sequence<UInt8>) { bytes.append(contentsOf: sequence) }

  /// Bytes with their count (32 bits) in front.
  @inlinable
  package mutating func counted(_ collection: some Collection<UInt8>) {
    integer(UInt32(truncatingIfNeeded: collection.count))
    bytes.append(contentsOf: collection)
  }

  /// UTF-8 with its count in bytes in front.
  @inlinable
  package mutating func text(_ text: String) { counted(text.utf8) }
}

/// Reads what ``ByteWriter`` wrote. Every step can fail, none traps, whatever the bytes.
package struct ByteReader {
  private var rest: ArraySlice<UInt8>

  package init(_ bytes: some Sequence<UInt8>) { rest = ArraySlice(bytes) }

  package var isAtEnd: Bool { rest.isEmpty }

  package mutating func integer<Integer: FixedWidthInteger>(_ type: Integer.Type = Integer.self) -> Integer? {
    guard let slice = raw(MemoryLayout<Integer>.size) else { return nil }
    return slice.withUnsafeBytes { Integer(littleEndian: $0.loadUnaligned(as: Integer.self)) }
  }

  package mutating func raw(_ count: Int) -> ArraySlice<UInt8>? {
    guard count >= 0, count <= rest.count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  package mutating func counted() -> ArraySlice<UInt8>? {
    guard let count = integer(UInt32.self), let count = Int(exactly: count) else { return nil }
    return raw(count)
  }

  /// Invalid UTF-8 is nil, not repaired: a key must come back as it was.
  package mutating func text() -> String? {
    counted()?.withUnsafeBufferPointer { bytes in
      // `String(validating:as:)` is generic, and takes three times as long. Repairing changes every invalid byte, so what is the
      // same was valid.
      let text = String(decoding: bytes, as: UTF8.self)
      return text.utf8.elementsEqual(bytes) ? text : nil
    }
  }
}
