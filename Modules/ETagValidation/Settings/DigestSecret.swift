internal import CacheCore

/// 128 secret bits under which credentials become digests before they reach a store.
///
/// Persistent stores need one secret for as long as their entries shall match: with a random one, answers that were selected by
/// `Authorization` or `Cookie` are not found again after a restart.
public struct DigestSecret: Hashable, Sendable {
  let key: SipHash.Key

  /// A secret that was kept somewhere safe.
  public init(high: UInt64, low: UInt64) { key = SipHash.Key(first: high, second: low) }

  /// A secret of its 16 bytes, as a store keeps it; nil when there are not 16.
  public init?(bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    func word(_ bytes: some Collection<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(high: word(bytes.prefix(8)), low: word(bytes.dropFirst(8)))
  }

  /// A new one.
  public static func random() -> DigestSecret {
    var generator = SystemRandomNumberGenerator()
    return DigestSecret(high: generator.next(), low: generator.next())
  }

  /// A secret field's value as it may be stored. The name takes part: the same value in two fields has two digests.
  func digest(of bytes: [UInt8], in name: String) -> [UInt8] {
    let (a, b) = SipHash.digest(Array(name.utf8) + [UInt8(ascii: ":")] + bytes, key: key)
    return Array("siphash128:\(Hexadecimal.text(a.byteSwapped))\(Hexadecimal.text(b.byteSwapped))".utf8)
  }

  /// Tells two secrets apart without telling either.
  var fingerprint: String { SipHash.hexadecimal("fingerprint", key: key) }
}

extension DigestSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Says nothing about the bits, so that none gets into a log.
  public var description: String { "DigestSecret" }
  /// As ``description``.
  public var debugDescription: String { description }
  /// Shows no parts.
  public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
