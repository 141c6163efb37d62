internal import CacheCore

/// `folder.key`: the random key that hashes the folder's file names.
///
/// With a key, the choice of a URL does not determine a file name. The key is stored in the folder so that every process computes
/// the same names.
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

  /// Decodes the key, or returns `nil` if the bytes are damaged.
  static func decoded(_ bytes: [UInt8]) -> SipHash.Key? {
    guard bytes.count == length else { return nil }
    return bytes.withUnsafeBytes { bytes in
      guard bytes.part(0..<8).elementsEqual(magic), bytes.integer(at: 8) == version,
        bytes.integer(at: 28) == Checksum.of(bytes.part(0..<28))
      else { return nil }
      return SipHash.Key(first: bytes.integer(at: 12), second: bytes.integer(at: 20))
    }
  }

  /// Returns a secret that is derived from the key and does not reveal it.
  static func digestSecret(_ key: SipHash.Key) -> DigestSecret {
    let (first, second) = SipHash.digest("etagere digest secret 1", key: key)
    // The secret is the 16 bytes of the two words, the least significant byte of each first.
    return DigestSecret(high: first.byteSwapped, low: second.byteSwapped)
  }
}
