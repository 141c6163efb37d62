internal import CacheCore

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
    guard end >= 0, section.integer(at: end) == Checksum.of(section.part(0..<end)) else { return nil }
    var reader = RawByteReader(section.part(0..<end))
    guard let resource = reader.counted(), let variant = reader.counted(), let transform = reader.counted(), reader.isAtEnd else {
      return nil
    }
    return (resource, variant, transform)
  }
}
