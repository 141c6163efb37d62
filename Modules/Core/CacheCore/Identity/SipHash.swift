private import Synchronization

/// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", and the 128-bit variant of its
/// reference implementation). It is a keyed digest: without the key, collisions cannot be constructed.
///
/// `DiskStore` names its files with it, and variants contain it in place of secret header fields. It is not a signature.
package struct SipHash: Sendable {
  /// A key of 128 bits.
  package struct Key: Hashable, Sendable {
    package let first, second: UInt64

    package init(first: UInt64, second: UInt64) { (self.first, self.second) = (first, second) }

    package static func random() -> Key {
      var generator = SystemRandomNumberGenerator()
      return Key(first: generator.next(), second: generator.next())
    }
  }

  private var v0, v1, v2, v3: UInt64

  /// Returns the digest of `bytes` under `key`, as two 64-bit words.
  package static func digest(_ bytes: [UInt8], key: Key) -> (UInt64, UInt64) { bytes.withUnsafeBytes { digest($0, key: key) } }

  /// Returns the digest of a text's UTF-8 bytes.
  package static func digest(_ text: String, key: Key) -> (UInt64, UInt64) {
    var text = text
    return text.withUTF8 { digest(UnsafeRawBufferPointer($0), key: key) }
  }

  /// Returns the digest of a number's eight bytes, least significant byte first.
  package static func digest(_ number: UInt64, key: Key) -> (UInt64, UInt64) {
    var state = SipHash(key: key)
    state.absorb(number)
    state.absorb(8 << 56)
    return state.finish()
  }

  // Not generic over sequences: other modules would call a generic function unspecialized, ten times slower.
  private static func digest(_ bytes: UnsafeRawBufferPointer, key: Key) -> (UInt64, UInt64) {
    var state = SipHash(key: key)
    let words = bytes.count / 8
    for index in 0..<words { state.absorb(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))) }
    var last = UInt64(truncatingIfNeeded: bytes.count) << 56
    for (position, byte) in bytes[(words * 8)...].enumerated() { last |= UInt64(byte) << UInt64(8 * position) }
    state.absorb(last)
    return state.finish()
  }

  /// Returns the digest of a text's UTF-8 bytes as 32 hexadecimal digits.
  package static func hexadecimal(_ text: String, key: Key) -> String {
    hexadecimal(digest(text, key: key))
  }

  fileprivate static func hexadecimal(_ digest: (UInt64, UInt64)) -> String {
    Hexadecimal.text(digest.0.byteSwapped) + Hexadecimal.text(digest.1.byteSwapped)
  }

  @inline(__always) private init(key: Key) {
    v0 = key.first ^ 0x736f_6d65_7073_6575
    v1 = key.second ^ 0x646f_7261_6e64_6f6d ^ 0xee
    v2 = key.first ^ 0x6c79_6765_6e65_7261
    v3 = key.second ^ 0x7465_6462_7974_6573
  }

  @inline(__always) private mutating func absorb(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  @inline(__always) private mutating func finish() -> (UInt64, UInt64) {
    v2 ^= 0xee
    for _ in 0..<4 { round() }
    let first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xdd
    for _ in 0..<4 { round() }
    return (first, v0 ^ v1 ^ v2 ^ v3)
  }

  @inline(__always) private mutating func round() {
    v0 &+= v1
    v1 = v1 << 13 | v1 >> 51
    v1 ^= v0
    v0 = v0 << 32 | v0 >> 32
    v2 &+= v3
    v3 = v3 << 16 | v3 >> 48
    v3 ^= v2
    v0 &+= v3
    v3 = v3 << 21 | v3 >> 43
    v3 ^= v0
    v2 &+= v1
    v1 = v1 << 17 | v1 >> 47
    v1 ^= v2
    v2 = v2 << 32 | v2 >> 32
  }
}

/// Hexadecimal digits from a table, because `String(format:)` takes 45 µs for 32 bytes on Linux.
package enum Hexadecimal {
  private static let digits = Array("0123456789abcdef".utf8)

  /// Returns 16 digits as ASCII, most significant first.
  package static func digits(of word: UInt64) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
      count = fill(buffer, word)
    }
  }

  /// Returns 16 digits, most significant first.
  package static func text(_ word: UInt64) -> String {
    String(unsafeUninitializedCapacity: 16) { buffer in
      fill(buffer, word)
    }
  }

  private static func fill(_ buffer: UnsafeMutableBufferPointer<UInt8>, _ word: UInt64) -> Int {
    for index in 0..<16 { buffer[index] = digits[Int(word >> UInt64(60 - 4 * index) & 15)] }
    return 16
  }
}

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
  public static func random() -> DigestSecret { DigestSecret(key: .random()) }

  private init(key: SipHash.Key) { self.key = key }

  /// Returns the value of a secret field as it may be stored. The digest depends on the field name, so equal values in two fields
  /// have different digests.
  package func digest(of bytes: [UInt8], in name: String) -> [UInt8] {
    let digest = SipHash.digest(Array(name.utf8) + [UInt8(ascii: ":")] + bytes, key: key)
    return Array("siphash128:\(SipHash.hexadecimal(digest))".utf8)
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

/// The identity of one body. A new body gets a new revision, and a 304 leaves it unchanged.
///
/// It ties metadata, bytes and derived values together. A derived value whose revision differs from the metadata's is a miss, so
/// a store does not have to enumerate derived values.
public struct Revision: Hashable, Sendable {
  /// The upper 64 bits.
  public let high: UInt64
  /// The lower 64 bits.
  public let low: UInt64

  /// Creates a revision from its two halves, as a store reads it.
  public init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// Returns a new revision of 128 bits, which is unique across processes.
  ///
  /// It is a digest of a counter under a key that is random in each process. Random bits from the system would cost two system
  /// calls for each response.
  public static func random() -> Revision {
    let (high, low) = SipHash.digest(counter.wrappingAdd(1, ordering: .relaxed).newValue, key: key)
    return Revision(high: high, low: low)
  }

  private static let key = SipHash.Key.random()
  private static let counter = Atomic<UInt64>(0)
}

extension Revision: CustomStringConvertible {
  /// 32 hexadecimal digits.
  public var description: String { Hexadecimal.text(high) + Hexadecimal.text(low) }
}
