internal import CacheCore

/// The full key in an entry's file: three length-prefixed texts and a checksum.
///
/// The name of a file is only a hash, so what is found under it is compared with the key that was asked for.
enum KeySection {
  /// Bytes of a key that are stored at most: it is held in memory, and compared, on every read.
  static let keyLimit = 64 << 20
  /// Bytes of a section at most.
  static let lengthLimit = keyLimit + 16

  static func encoded(_ key: CacheKey) -> [UInt8] {
    var writer = ByteWriter()
    writer.text(key.resource)
    writer.text(key.variant)
    writer.text(key.form)
    writer.integer(Checksum.of(writer.bytes))
    return writer.bytes
  }

  /// The key in a section, or nil when the section is damaged.
  static func key(in section: UnsafeRawBufferPointer) -> CacheKey? {
    let end = section.count - 4
    guard end >= 0, section.integer(at: end) == Checksum.of(section.part(0..<end)) else { return nil }
    var reader = ByteReader(section.part(0..<end))
    guard let resource = reader.text(), let variant = reader.text(), let form = reader.text(), reader.isAtEnd else { return nil }
    return CacheKey(resource: resource, variant: variant, form: form)
  }
}
