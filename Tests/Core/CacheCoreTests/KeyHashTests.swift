import CacheCore
import Testing

@Suite("The hash of key texts")
struct KeyHashTests {
  /// SplitMix64 with a fixed seed, so that each run uses the same numbers.
  struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var value = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
      value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
      return value ^ value >> 31
    }
  }

  private static func hash(seed: UInt64) -> KeyHash {
    var numbers = Numbers(state: seed)
    return KeyHash(using: &numbers)
  }

  private let hash = Self.hash(seed: 1)

  private func of(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { hash($0) } }

  /// Lengths from zero to those that use `Hasher`, including the boundaries of words and of the coefficient table.
  static let lengths = Array(0...34) + [47, 48, 49, 60, 63, 64, 65, 127, 128, 248, 255, 256, 257, 258, 300, 1_000]

  @Test("the hash depends only on the bytes, not on their storage or on how the text was made", arguments: lengths)
  func representations(_ length: Int) {
    // Given one text, made in five ways
    let bytes = (0..<length).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    let whole = String(decoding: bytes, as: UTF8.self)
    var grown = ""
    for byte in bytes { grown.unicodeScalars.append(Unicode.Scalar(byte)) }
    let cut = String(("é\(whole)é").dropFirst().dropLast())
    let shifted = [0xFF] + bytes

    // Then all of them have the same hash
    let expected = of(bytes)
    #expect(hash(whole) == expected)
    #expect(hash(grown) == expected)
    #expect(hash(cut) == expected)
    #expect(shifted.withUnsafeBytes { hash(UnsafeRawBufferPointer(rebasing: $0[1...])) } == expected)
  }

  @Test("every bit, an appended zero and the order of words change the hash", arguments: lengths)
  func everyBit(_ length: Int) {
    var numbers = Numbers(state: UInt64(length))
    let bytes = (0..<length).map { _ in UInt8.random(in: 1...255, using: &numbers) }
    var seen: Set<UInt64> = [of(bytes)]
    for position in 0..<length {
      for bit in 0..<8 {
        var changed = bytes
        changed[position] ^= 1 << bit
        #expect(seen.insert(of(changed)).inserted, "bit \(bit) of byte \(position)")
      }
    }
    #expect(seen.insert(of(bytes + [0])).inserted)
    #expect(seen.insert(of(bytes + [0, 0])).inserted)
    if length >= 16 { #expect(seen.insert(of(Array(bytes[8..<16] + bytes[0..<8] + bytes[16...]))).inserted) }
    if length > 0 { #expect(seen.insert(of(Array(bytes.dropLast()))).inserted) }
  }

  @Test(
    "a changed bit of the text flips each bit of the hash with a probability of one half",
    arguments: [1, 3, 5, 8, 13, 24, 60, 256])
  func avalanche(_ length: Int) {
    // Uses 64 hashes: with a single one, a bit changes all sums by the same amount before they are mixed.
    var flips = [Int](repeating: 0, count: 64)
    var trials = 0
    var numbers = Numbers(state: 7)
    for seed in 0..<64 {
      let hash = Self.hash(seed: UInt64(seed))
      for _ in 0..<64 {
        var bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &numbers) }
        let before = bytes.withUnsafeBytes { hash($0) }
        bytes[Int.random(in: 0..<length, using: &numbers)] ^= 1 << UInt8.random(in: 0..<8, using: &numbers)
        let difference = before ^ bytes.withUnsafeBytes { hash($0) }
        trials += 1
        for bit in 0..<64 where difference >> UInt64(bit) & 1 == 1 { flips[bit] += 1 }
      }
    }
    // 4,096 coin tosses: eight standard deviations are 256.
    for (bit, count) in flips.enumerated() { #expect(abs(count - trials / 2) < 256, "bit \(bit)") }
  }

  /// Similar texts, such as the URLs of one site.
  enum Texts: String, CaseIterable, CustomTestStringConvertible {
    case numbered, padded, steps, long

    var testDescription: String { rawValue }

    func text(_ number: Int) -> String {
      switch self {
      case .numbered: "https://images.example.com/products/\(number)/large.jpg"
      case .padded: "\(1_000_000 + number)" + String(repeating: "x", count: 53)
      // A single word that increases by 256.
      case .steps:
        String(decoding: [UInt8(number & 127), UInt8(number >> 7 & 127), UInt8(number >> 14)] + [1, 1, 1, 1, 1], as: UTF8.self)
      case .long: String(repeating: "y", count: 300) + "\(number)"
      }
    }
  }

  @Test("similar texts are distributed evenly, whichever bits a table uses", arguments: Texts.allCases)
  func spread(_ texts: Texts) {
    let (count, parts) = (32_768, 256)
    for seed in 0..<2 {
      let hash = Self.hash(seed: UInt64(seed))
      let hashes = (0..<count).map { hash(texts.text($0)) }
      #expect(Set(hashes).count == count)
      for shift in [0, 16, 32, 48, 56] {
        var filled = [Int](repeating: 0, count: parts)
        for hash in hashes { filled[Int(hash >> UInt64(shift) & UInt64(parts - 1))] += 1 }
        // Chi-squared with 255 degrees of freedom: 255 ± 22.6. A more even distribution is not a defect.
        let expected = Double(count / parts)
        let chi = filled.reduce(0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
        #expect(chi < 255 + 8 * 22.6, "bits from \(shift), seed \(seed)")
      }
    }
  }

  @Test("the hash differs between processes and cannot be predicted")
  func keyed() {
    let texts = ["", "a", "https://example.com/", String(repeating: "z", count: 256)]
    for text in texts {
      #expect(Set((0..<100).map { Self.hash(seed: $0)(text) }).count == 100)
      var system = SystemRandomNumberGenerator()
      #expect(KeyHash(using: &system)(text) != KeyHash.ofProcess(text))
    }
  }

  @Test("before mixing, the hash is the published sum of words times coefficients")
  func formula() {
    // Given coefficients whose upper half is 1, so that the upper half of the sum is the sum of length and words
    struct Ones: RandomNumberGenerator {
      var isUpper = false
      mutating func next() -> UInt64 {
        isUpper.toggle()
        return isUpper ? 1 : 0
      }
    }
    var ones = Ones()
    let plain = KeyHash(using: &ones)
    func stirred(_ sum: UInt64) -> UInt64 {
      let product = (sum ^ sum >> 32) &* 0xD6E8_FEB8_6659_FD93
      return product ^ product >> 32
    }

    // Then the sum consists of the start, the length and the words, the last of which may overlap the one before it
    func hash(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { plain($0) } }
    #expect(hash([]) == stirred(1))
    #expect(hash([1, 0, 0, 0, 0, 0, 0, 0]) == stirred(1 + 8 + UInt64(littleEndian: 1)))
    #expect(hash([1, 0, 0, 0, 0, 0, 0, 0, 1]) == stirred(1 + 9 + UInt64(littleEndian: 1) + UInt64(littleEndian: 1 << 56)))
    #expect(hash([UInt8](repeating: 1, count: 256)) == stirred(1 &+ 256 &+ 32 &* 0x0101_0101_0101_0101))
  }
}
