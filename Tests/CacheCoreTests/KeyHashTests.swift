import CacheCore
import Testing

@Suite("The hash of a key's text")
struct KeyHashTests {
  /// SplitMix64: the same numbers in each run.
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

  /// From nothing to what goes another way, with the ends of words and of the table between.
  static let lengths = Array(0...34) + [47, 48, 49, 60, 63, 64, 65, 127, 128, 248, 255, 256, 257, 258, 300, 1_000]

  @Test("goes by the bytes, wherever they lie and however the text was made", arguments: lengths)
  func representations(_ length: Int) {
    // Given one text, made in five ways
    let bytes = (0..<length).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    let whole = String(decoding: bytes, as: UTF8.self)
    var grown = ""
    for byte in bytes { grown.unicodeScalars.append(Unicode.Scalar(byte)) }
    let cut = String(("é\(whole)é").dropFirst().dropLast())
    let shifted = [0xFF] + bytes

    // Then it has one hash
    let expected = of(bytes)
    #expect(hash(whole) == expected)
    #expect(hash(grown) == expected)
    #expect(hash(cut) == expected)
    #expect(shifted.withUnsafeBytes { hash(UnsafeRawBufferPointer(rebasing: $0[1...])) } == expected)
  }

  @Test("changes with every bit, with a zero more or less, and with the order of the words", arguments: lengths)
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

  @Test("changes half of its bits with any bit of the text", arguments: [1, 3, 5, 8, 13, 24, 60, 256])
  func avalanche(_ length: Int) {
    // Over 64 hashes: for one alone, a bit moves all texts by the same step before they are stirred.
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
    // 4,096 throws of a coin: eight standard deviations are 256.
    for (bit, count) in flips.enumerated() { #expect(abs(count - trials / 2) < 256, "bit \(bit)") }
  }

  /// Texts that resemble each other, as those of one site do.
  enum Texts: String, CaseIterable, CustomTestStringConvertible {
    case numbered, padded, steps, long

    var testDescription: String { rawValue }

    func text(_ number: Int) -> String {
      switch self {
      case .numbered: "https://images.example.com/products/\(number)/large.jpg"
      case .padded: "\(1_000_000 + number)" + String(repeating: "x", count: 53)
      // One word, which goes up by 256.
      case .steps:
        String(decoding: [UInt8(number & 127), UInt8(number >> 7 & 127), UInt8(number >> 14)] + [1, 1, 1, 1, 1], as: UTF8.self)
      case .long: String(repeating: "y", count: 300) + "\(number)"
      }
    }
  }

  @Test("spreads similar texts evenly, whichever bits a table goes by", arguments: Texts.allCases)
  func spread(_ texts: Texts) {
    let (count, parts) = (32_768, 256)
    for seed in 0..<2 {
      let hash = Self.hash(seed: UInt64(seed))
      let hashes = (0..<count).map { hash(texts.text($0)) }
      #expect(Set(hashes).count == count)
      for shift in [0, 16, 32, 48, 56] {
        var filled = [Int](repeating: 0, count: parts)
        for hash in hashes { filled[Int(hash >> UInt64(shift) & UInt64(parts - 1))] += 1 }
        // Chi-squared with 255 degrees of freedom: 255 ± 22.6; evener than chance is no defect.
        let expected = Double(count / parts)
        let chi = filled.reduce(0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
        #expect(chi < 255 + 8 * 22.6, "bits from \(shift), seed \(seed)")
      }
    }
  }

  @Test("is another one in each process: nothing of it can be worked out beforehand")
  func keyed() {
    let texts = ["", "a", "https://example.com/", String(repeating: "z", count: 256)]
    for text in texts {
      #expect(Set((0..<100).map { Self.hash(seed: $0)(text) }).count == 100)
      var system = SystemRandomNumberGenerator()
      #expect(KeyHash(using: &system)(text) != KeyHash.ofProcess(text))
    }
  }

  @Test("is the sum of words times coefficients, as published, before it is stirred")
  func formula() {
    // Given coefficients that are 1 in their upper half, so that the sum's upper half is the sum of length and words
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

    // Then the start, the length, and the words, of which the last may overlap the one before it, are added up
    func hash(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { plain($0) } }
    #expect(hash([]) == stirred(1))
    #expect(hash([1, 0, 0, 0, 0, 0, 0, 0]) == stirred(1 + 8 + UInt64(littleEndian: 1)))
    #expect(hash([1, 0, 0, 0, 0, 0, 0, 0, 1]) == stirred(1 + 9 + UInt64(littleEndian: 1) + UInt64(littleEndian: 1 << 56)))
    #expect(hash([UInt8](repeating: 1, count: 256)) == stirred(1 &+ 256 &+ 32 &* 0x0101_0101_0101_0101))
  }
}
