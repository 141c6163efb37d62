/// The frame sizes that an AV1 bitstream declares (AV1 Bitstream & Decoding Process Specification §5.5, §5.9).
struct AV1Sequence {
  /// The largest declared frame size.
  private(set) var size = PixelSize(0, 0)
  /// The largest size that a frame with an explicit size can have.
  private(set) var bound = PixelSize(0, 0)
  private var isReduced = false
  private var presentationTimeLength: Int?
  private var frameIDLength: Int?
  private var screenContentTools = 2
  private var integerMotionVectors = 2

  /// Parses `sequence_header_obu`. Returns `nil` if it is truncated.
  init?(_ bytes: some Sequence<UInt8>) {
    var bits = BitReader(bytes)
    bits.skip(4)
    isReduced = bits.flag()
    if isReduced { bits.skip(5) } else { readOperatingPoints(&bits) }
    let (widthBits, heightBits) = (bits.read(4) + 1, bits.read(4) + 1)
    size = PixelSize(bits.read(widthBits) + 1, bits.read(heightBits) + 1)
    bound = PixelSize(1 << widthBits, 1 << heightBits)
    if !isReduced, bits.flag() {
      let delta = bits.read(4) + 2
      frameIDLength = delta + bits.read(3) + 1
    }
    bits.skip(3)
    if !isReduced {
      bits.skip(4)
      if bits.flag() { bits.skip(2) }
      screenContentTools = bits.flag() ? 2 : bits.read(1)
      if screenContentTools > 0 { integerMotionVectors = bits.flag() ? 2 : bits.read(1) }
    }
    if bits.isOver { return nil }
  }

  private mutating func readOperatingPoints(_ bits: inout BitReader) {
    var delayLength: Int?
    if bits.flag() {
      bits.skip(64)
      let hasEqualIntervals = bits.flag()
      if hasEqualIntervals { _ = bits.readVariable() }
      if bits.flag() {
        delayLength = bits.read(5) + 1
        bits.skip(37)
        let length = bits.read(5) + 1
        if !hasEqualIntervals { presentationTimeLength = length }
      }
    }
    let hasDisplayDelay = bits.flag()
    for _ in 0...bits.read(5) {
      bits.skip(12)
      if bits.read(5) > 7 { bits.skip(1) }
      if let delayLength, bits.flag() { bits.skip(2 * delayLength + 1) }
      if hasDisplayDelay, bits.flag() { bits.skip(4) }
    }
  }

  /// Returns whether a frame has an explicit size. Parses the beginning of `uncompressed_header` up to that flag.
  func hasOwnSize(frame bytes: some Sequence<UInt8>) -> Bool {
    if isReduced { return false }
    var bits = BitReader(bytes)
    if bits.flag() { return false }
    let (kind, isShown) = (bits.read(2), bits.flag())
    if isShown, let presentationTimeLength { bits.skip(presentationTimeLength) }
    if !isShown { bits.skip(1) }
    let isSwitch = kind == 3
    if !isSwitch, !(kind == 0 && isShown) { bits.skip(1) }
    bits.skip(1)
    if screenContentTools == 2 ? bits.flag() : screenContentTools == 1, integerMotionVectors == 2 { bits.skip(1) }
    if let frameIDLength { bits.skip(frameIDLength) }
    return isSwitch || bits.flag()
  }
}

/// The frame size in an HEVC sequence parameter set (ITU-T H.265 §7.3.2.2).
enum HEVCSequence {
  /// - Parameter unit: A NAL unit.
  /// - Returns: `nil` if the unit is of another type or truncated.
  static func size(_ unit: some Collection<UInt8>) -> PixelSize? {
    // Type 33 in layer 0: no decoder used by this package reads further layers. Decoders ignore the first bit, which
    // must be 0.
    guard unit.count > 2, let first = unit.first, first >> 1 & 63 == 33, first & 1 == 0 else { return nil }
    var bits = BitReader(payload(unit.dropFirst(2)))
    bits.skip(4)
    let sublayers = bits.read(3)
    bits.skip(1 + 96)
    let flags = (0..<sublayers).map { _ in (hasProfile: bits.flag(), hasLevel: bits.flag()) }
    if sublayers > 0 { bits.skip(2 * (8 - sublayers)) }
    for flag in flags { bits.skip((flag.hasProfile ? 88 : 0) + (flag.hasLevel ? 8 : 0)) }
    _ = bits.readVariable()
    if bits.readVariable() == 3 { bits.skip(1) }
    let size = PixelSize(bits.readVariable(), bits.readVariable())
    return bits.isOver ? nil : size
  }

  /// Removes the emulation prevention bytes (§7.4.2).
  private static func payload(_ unit: some Sequence<UInt8>) -> [UInt8] {
    var (payload, zeros): ([UInt8], Int) = ([], 0)
    for byte in unit.prefix(256) {
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      payload.append(byte)
    }
    return payload
  }
}

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
