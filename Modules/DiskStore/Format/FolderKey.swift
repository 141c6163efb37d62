internal import CacheCore

/// `folder.key`: the random key that a folder's file names are hashed with.
///
/// Keyed, so that nobody who chooses URLs can choose their file names; kept in the folder, so that every process finds the same
/// names.
enum FolderKey {
  static let magic: [UInt8] = [0x8B, 0x45, 0x54, 0x4B, 0x0D, 0x0A, 0x1A, 0x0A]
  static let length = 32
  private static let version: UInt32 = 1

  static func encoded(_ key: SipHash.Key) -> [UInt8] {
    var writer = ByteWriter()
    writer.raw(magic)
    writer.integer(version)
    writer.integer(key.first)
    writer.integer(key.second)
    writer.integer(Checksum.of(writer.bytes))
    return writer.bytes
  }

  /// The key in the file's bytes, or nil when they are damaged.
  static func decoded(_ bytes: [UInt8]) -> SipHash.Key? {
    guard bytes.count == length else { return nil }
    return bytes.withUnsafeBytes { bytes in
      guard bytes.part(0..<8).elementsEqual(magic), bytes.integer(at: 8) == version,
        bytes.integer(at: 28) == Checksum.of(bytes.part(0..<28))
      else { return nil }
      return SipHash.Key(first: bytes.integer(at: 12), second: bytes.integer(at: 20))
    }
  }

  /// 16 bytes that follow from the key and do not tell it.
  static func digestSecret(_ key: SipHash.Key) -> [UInt8] {
    let (first, second) = SipHash.digest("etagere digest secret 1", key: key)
    var writer = ByteWriter()
    writer.integer(first)
    writer.integer(second)
    return writer.bytes
  }
}
