/// A secret of 128 bits, with which credentials become digests before they reach a store.
///
/// A persistent store needs the same secret for as long as its entries must match. With a random one, responses that
/// `Authorization` or `Cookie` selected are not found after a restart. `DiskCache` and `SQLiteCache` have a secret of their own,
/// for the validator:
///
/// ```swift
/// let disk = try DiskCache(folder: folder)
/// configuration.validator = ETagValidator(mode: .shared, digestSecret: disk.digestSecret)
/// ```
public struct DigestSecret: Hashable, Sendable {
  let key: SipHash.Key

  /// Creates a secret from its two halves, as your app has saved them.
  public init(high: UInt64, low: UInt64) { key = SipHash.Key(first: high, second: low) }

  /// Creates a secret from its 16 bytes, or returns `nil` for any other number of bytes.
  public init?(bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    func word(_ bytes: some Collection<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(high: word(bytes.prefix(8)), low: word(bytes.dropFirst(8)))
  }

  /// Returns a new random secret.
  public static func random() -> DigestSecret {
    var generator = SystemRandomNumberGenerator()
    return DigestSecret(high: generator.next(), low: generator.next())
  }

  /// Returns the value of a secret field as it may be stored. The digest depends on the field name, so equal values in two fields
  /// have different digests.
  package func digest(of bytes: [UInt8], in name: String) -> [UInt8] {
    let (a, b) = SipHash.digest(Array(name.utf8) + [UInt8(ascii: ":")] + bytes, key: key)
    return Array("siphash128:\(Hexadecimal.text(a.byteSwapped))\(Hexadecimal.text(b.byteSwapped))".utf8)
  }

  /// A text that identifies the secret without revealing it.
  package var fingerprint: String { SipHash.hexadecimal("fingerprint", key: key) }
}

extension DigestSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The name of the type, without the bits, so that they never appear in a log.
  public var description: String { "DigestSecret" }
  /// The name of the type, without the bits.
  public var debugDescription: String { description }
  /// A mirror without children.
  public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
