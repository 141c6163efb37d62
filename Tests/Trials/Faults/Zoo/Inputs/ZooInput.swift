#if Service
import CacheTesting
import Foundation

/// A file that a stranger could send, and the responses that are right for it.
struct ZooInput: Sendable {
  /// A name that says what the file is. It is also its file name.
  var name: String
  /// The format and the kind of the attack, for the report.
  var family: String
  var file: Data
  var expectation: ZooExpectation

  /// Returns the inputs of one family.
  ///
  /// - Parameter files: The files by what is special about them.
  static func family(_ family: String, _ expectation: ZooExpectation, _ files: [(String, Data)]) -> [ZooInput] {
    files.map { detail, file in
      let name = "\(family) \(detail)".lowercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" }
      return ZooInput(name: String(name), family: family, file: file, expectation: expectation)
    }
  }

  /// Returns all inputs. The same seed gives the same files with the same codecs.
  static func all(seed: UInt64) throws -> [ZooInput] {
    let samples = try ZooSamples()
    var generator = SplitMix(state: seed)
    let inputs =
      samples.inputs + PNGZoo.inputs() + (try GIFZoo.inputs()) + (try JPEGZoo.inputs(samples)) + (try WebPZoo.inputs(samples))
      + HEIFZoo.inputs(samples) + TIFFZoo.inputs() + SVGZoo.inputs() + SVGFilterZoo.inputs()
      + UnknownZoo.inputs(samples, &generator) + DamagedZoo.inputs(samples, &generator)
    try require(Set(inputs.map(\.name)).count == inputs.count, "two inputs of the zoo have the same name")
    for input in inputs where input.file.count > ZooLimits.bytes && input.expectation.codes != ZooExpectation.tooManyBytes.codes {
      throw FailedCheck("the input \(input.name) has \(input.file.count) bytes, which the service does not read")
    }
    return inputs
  }

  /// Returns about every fifth input, at least one of each family.
  static func some(of inputs: [ZooInput], seed: UInt64) -> [ZooInput] {
    var generator = SplitMix(state: seed &+ 1)
    let families = Dictionary(grouping: inputs, by: \.family).sorted { $0.key < $1.key }
    return families.flatMap { $0.value.shuffled(using: &generator).prefix($0.value.count / 5 + 1) }
  }
}

/// The responses that are right for an input.
struct ZooExpectation: Sendable {
  /// Whether an image is right.
  var allowsImage: Bool
  /// The codes of the problems that are right.
  var codes: Set<String>

  /// A codec that a file ends, or that needs too much memory for it, is stopped and named.
  private static let stopped: Set = ["codecCrashed", "codecOutOfMemory"]
  private static let refusals: Set = ["imageLimitExceeded", "notAnImage", "unsupportedFormat"]
  private static let timeouts: Set = ["timedOut", "codecTimedOut"]

  /// A file without a defect.
  static let image = Self(allowsImage: true, codes: [])
  /// A file that no codec can draw within the limits.
  static let refusal = Self(allowsImage: false, codes: refusals.union(stopped))
  /// Bytes that are not an image, or one of a format that is not decoded.
  static let unknown = Self(allowsImage: false, codes: ["notAnImage", "unsupportedFormat"])
  /// A file with more bytes than the service reads.
  static let tooManyBytes = Self(allowsImage: false, codes: ["sourceTooLarge"])
  /// A damaged or strange file, which codecs may draw.
  static let either = Self(allowsImage: true, codes: refusals.union(stopped))
  /// A file whose work may exceed the time limit.
  static let slow = Self(allowsImage: true, codes: refusals.union(stopped).union(timeouts))

  var isSlow: Bool { !codes.isDisjoint(with: Self.timeouts) }
}

/// The limits of the service in the trial. Some inputs are at them, and some just beyond.
enum ZooLimits {
  static let pixels = 4_000_000
  static let bytes = 2 << 20
  /// The limit of the time for a result, in seconds.
  static let timeout = 3
  static let side = 2_048
}

/// The bytes of numbers.
enum ZooBytes {
  /// Returns the lowest bytes of a number, the least significant one first.
  static func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }

  /// Returns the lowest bytes of a number, the most significant one first.
  static func big(_ value: Int, _ count: Int) -> [UInt8] { little(value, count).reversed() }

  /// Returns a zlib stream of zeros, which takes a byte for 158 of them: matches of 258 bytes with the fixed Huffman codes
  /// (RFC 1951 §3.2.6).
  static func zlibZeros(_ count: Int) -> [UInt8] {
    var stream: [UInt8] = [0x78, 0x9C]
    var (buffer, filled) = (UInt64(0), UInt64(0))
    func write(_ value: UInt64, _ length: UInt64) {
      buffer |= value << filled
      filled += length
      while filled >= 8 {
        stream.append(UInt8(truncatingIfNeeded: buffer))
        (buffer, filled) = (buffer >> 8, filled - 8)
      }
    }
    // The last block, with the fixed codes. Codes begin with their most significant bit, so they are reversed here.
    write(0b011, 3)
    let (literal, match) = ((value: UInt64(0x0C), length: UInt64(8)), (value: UInt64(0xA3), length: UInt64(13)))
    if count > 0 { write(literal.value, literal.length) }
    // Eight matches are 13 bytes, whatever bits are before them.
    let matches = max(count - 1, 0) / 258
    for _ in 0..<min(matches, 8 + matches % 8) { write(match.value, match.length) }
    if matches >= 16 { stream += Array(stream.suffix(13)).times((matches - 8) / 8) }
    for _ in 0..<max(count - 1, 0) % 258 { write(literal.value, literal.length) }
    // The end of the block, and zeros up to the next byte.
    write(0, 7)
    write(0, (8 - filled) % 8)
    // The checksum of zeros: its first sum stays 1.
    return stream + big((count % 65_521) << 16 | 1, 4)
  }
}

extension [UInt8] {
  /// Returns the bytes `count` times. Without optimization, it takes a small part of the time of `joined()`.
  func times(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(self.count * count)
    for _ in 0..<count { bytes += self }
    return bytes
  }
}

extension String {
  /// Returns the text `count` times.
  func times(_ count: Int) -> String { String(repeating: self, count: count) }
}
#endif
