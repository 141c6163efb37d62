internal import CacheCore

/// 16 bytes that stand for a text in the name of a file, where they are 32 lower-case hexadecimal digits.
struct NameDigest: Hashable, Comparable, Sendable {
  /// In the order of the digits.
  var high, low: UInt64

  init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// Of what SipHash has made.
  init(_ digest: (UInt64, UInt64)) { self.init(high: digest.0.byteSwapped, low: digest.1.byteSwapped) }

  static func < (one: NameDigest, other: NameDigest) -> Bool { (one.high, one.low) < (other.high, other.low) }

  /// Writes the 32 digits, or the first of them, and returns what is behind them.
  func write(_ count: Int = 32, to start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
    for place in 0..<count {
      let word = place < 16 ? high : low
      let digit = UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * (place & 15))) & 15
      start[place] = digit + (digit < 10 ? 0x30 : 0x57)
    }
    return start + count
  }

  // What is hashed is a keyed hash already, so nobody can make digests that collide; the lower half is not what shards and lanes go by.
  func hash(into hasher: inout Hasher) { hasher.combine(low) }

  /// The parts of a file's name of the shape `<32 hex>.<letter>`.
  static func parse(_ name: some Collection<UInt8>) -> (NameDigest, suffix: UInt8)? {
    guard name.count == 34 else { return nil }
    var words: (UInt64, UInt64) = (0, 0)
    var suffix: UInt8 = 0
    for (place, byte) in name.enumerated() {
      switch place {
      case 0..<32:
        guard let digit = value(byte) else { return nil }
        if place < 16 { words.0 = words.0 << 4 | digit } else { words.1 = words.1 << 4 | digit }
      case 32: guard byte == 0x2E else { return nil }
      default: suffix = byte
      }
    }
    return (NameDigest(high: words.0, low: words.1), suffix)
  }

  /// Of a digit.
  static func value(_ byte: UInt8) -> UInt64? {
    switch byte {
    case 0x30...0x39: UInt64(byte - 0x30)
    case 0x61...0x66: UInt64(byte - 0x61 + 10)
    default: nil
    }
  }
}
