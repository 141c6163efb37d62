/// The hash of a key's text: keyed, universal, and much quicker than a general one.
///
/// The text's length and its 64-bit words are multiplied by random coefficients of 128 bits, and the upper half of the sum is
/// taken (multilinear hashing: Dietzfelbinger, STACS '96; Lemire and Kaser, "Strongly universal string hashing is fast", 2014).
/// Whatever two different texts of up to 256 bytes somebody chooses, they share a hash with a chance of 2⁻⁶⁴, over the
/// coefficients of the process. Longer ones go through the standard library's `Hasher` (SipHash-1-3).
///
/// So nobody can prepare keys that fall into one place of a table. It is no digest: who is shown hashes can work out the
/// coefficients, and they must not leave the process.
package struct KeyHash: Sendable {
  // Proof of `@unchecked Sendable`: written in `init` and never again. It is not freed: there is one for the process.
  private struct Coefficients: @unchecked Sendable {
    let values: UnsafePointer<UInt128>
  }

  /// Of this process.
  package static let ofProcess = {
    var generator = SystemRandomNumberGenerator()
    return KeyHash(using: &generator)
  }()

  private static let longest = 256
  private let coefficients: Coefficients

  /// One with coefficients of its own, for as long as the process runs.
  package init(using generator: inout some RandomNumberGenerator) {
    // Two for the start and the length, one for each word.
    let count = 2 + Self.longest / 8
    let values = UnsafeMutablePointer<UInt128>.allocate(capacity: count)
    for index in 0..<count {
      (values + index).initialize(
        to: UInt128(truncatingIfNeeded: generator.next()) << 64 | UInt128(truncatingIfNeeded: generator.next()))
    }
    coefficients = Coefficients(values: values)
  }

  /// The hash of the text's UTF-8 bytes.
  package func callAsFunction(_ text: String) -> UInt64 {
    if let hash = text.utf8.withContiguousStorageIfAvailable({ self(UnsafeRawBufferPointer($0)) }) { return hash }
    var copy = text
    return copy.withUTF8 { self(UnsafeRawBufferPointer($0)) }
  }

  /// The hash of three texts, which are told apart: the hash of their hashes. The first one's is there already.
  package func callAsFunction(digest first: UInt64, _ second: String, _ third: String) -> UInt64 {
    withUnsafeBytes(of: (first, self(second), self(third))) { self($0) }
  }

  /// The hash of bytes.
  package func callAsFunction(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    guard bytes.count <= Self.longest else {
      var hasher = Hasher()
      hasher.combine(bytes: bytes)
      return UInt64(bitPattern: Int64(hasher.finalize()))
    }
    let a = coefficients.values
    let count = bytes.count
    var sum = a[0] &+ a[1] &* UInt128(truncatingIfNeeded: count)
    guard count >= 8, let start = bytes.baseAddress else { return Self.mixed(sum &+ a[2] &* UInt128(Self.word(bytes))) }
    var next = a + 2
    var offset = 0
    while offset + 8 < count {
      sum &+= next.pointee &* UInt128(start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset += 8
      next += 1
    }
    // The last word may overlap the one before it.
    return Self.mixed(sum &+ next.pointee &* UInt128(start.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)))
  }

  /// Less than eight bytes in one word: another one for any others of the same number.
  private static func word(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    let count = bytes.count
    if count >= 4 {
      let (low, high) = (bytes.loadUnaligned(as: UInt32.self), bytes.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self))
      return UInt64(low) | UInt64(high) << 32
    }
    guard count > 0 else { return 0 }
    return UInt64(bytes[0]) | UInt64(bytes[count / 2]) << 8 | UInt64(bytes[count - 1]) << 16
  }

  /// The upper half, its bits stirred: texts that differ by a step have hashes that do, and a table that goes by some of the bits
  /// would notice.
  private static func mixed(_ sum: UInt128) -> UInt64 {
    var hash = UInt64(truncatingIfNeeded: sum >> 64)
    hash = (hash ^ hash >> 32) &* 0xD6E8_FEB8_6659_FD93
    return hash ^ hash >> 32
  }
}
