internal import CacheCore

/// A 16-byte digest, written in file names as 32 lowercase hexadecimal digits.
struct NameDigest: Hashable, Comparable, Sendable {
  /// The two halves, in the order of the digits.
  var high, low: UInt64

  init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// Creates a digest from SipHash's result.
  init(_ digest: (UInt64, UInt64)) { self.init(high: digest.0.byteSwapped, low: digest.1.byteSwapped) }

  static func < (one: NameDigest, other: NameDigest) -> Bool { (one.high, one.low) < (other.high, other.low) }

  /// Writes the 32 digits and returns the position behind them.
  func write(to start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
    let place = UnsafeMutableRawPointer(start)
    for (part, word) in [high >> 32, high, low >> 32, low].enumerated() {
      place.storeBytes(of: Self.digits(UInt32(truncatingIfNeeded: word)).littleEndian, toByteOffset: 8 * part, as: UInt64.self)
    }
    return start + 32
  }

  /// Writes the first two digits and returns the position behind them.
  func writeShard(to start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
    let digits = Self.digits(UInt32(high >> 32))
    (start[0], start[1]) = (UInt8(truncatingIfNeeded: digits), UInt8(truncatingIfNeeded: digits >> 8))
    return start + 2
  }

  /// Returns the eight digits of a number in one word, the first in the lowest byte. Every call of the store builds a path with
  /// 32 of them, so they are not converted one at a time.
  private static func digits(_ number: UInt32) -> UInt64 {
    var word = UInt64(number.byteSwapped)
    // Spread four bytes into eight half bytes, the upper half of each byte first.
    word = (word | word << 16) & 0x0000_FFFF_0000_FFFF
    word = (word | word << 8) & 0x00FF_00FF_00FF_00FF
    word = (word >> 4 | word << 8) & 0x0F0F_0F0F_0F0F_0F0F
    // A one in each byte above nine, which becomes a letter.
    let letters = (word + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return word + 0x3030_3030_3030_3030 + letters * 0x27
  }
  // The digest is a keyed hash already, so collisions cannot be chosen. Shards and lanes use the upper half.
  func hash(into hasher: inout Hasher) { hasher.combine(low) }

  /// Parses a file name of the form `<32 hex>.<letter>`.
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

  /// Returns the value of a hexadecimal digit.
  static func value(_ byte: UInt8) -> UInt64? {
    switch byte {
    case 0x30...0x39: UInt64(byte - 0x30)
    case 0x61...0x66: UInt64(byte - 0x61 + 10)
    default: nil
    }
  }
}
