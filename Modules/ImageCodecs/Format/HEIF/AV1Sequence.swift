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
