/// A reader for unsigned numbers of any bit count, most significant bit first. Beyond the end it returns zeros and sets
/// `isOver`.
struct BitReader {
  private let bytes: [UInt8]
  private var next = 0

  init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

  var isOver: Bool { next > bytes.count * 8 }

  mutating func read(_ count: Int) -> Int {
    var value = 0
    for _ in 0..<count {
      let byte = next / 8
      value = value << 1 | (byte < bytes.count ? Int(bytes[byte] >> UInt8(7 - next % 8)) & 1 : 0)
      next += 1
    }
    return value
  }

  mutating func flag() -> Bool { read(1) == 1 }

  mutating func skip(_ count: Int) { next += count }

  /// Reads a variable-length number whose leading zeros give its bit count: `uvlc` of AV1 (§4.10.3), `ue` of HEVC
  /// (§9.2).
  mutating func readVariable() -> Int {
    var zeros = 0
    while zeros < 32, !isOver, !flag() { zeros += 1 }
    return (1 << zeros) - 1 + read(zeros)
  }
}
