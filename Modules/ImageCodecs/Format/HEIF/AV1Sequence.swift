/// What an AV1 bitstream says of the size of its frames (AV1 Bitstream & Decoding Process Specification §5.5, §5.9).
struct AV1Sequence {
  /// The largest frame that is announced.
  private(set) var size = PixelSize(0, 0)
  /// The largest that a frame can have that announces a size of its own.
  private(set) var bound = PixelSize(0, 0)
  private var isReduced = false
  private var presentationTimeLength: Int?
  private var frameIDLength: Int?
  private var screenContentTools = 2
  private var integerMotionVectors = 2

  /// Reads `sequence_header_obu`. Nil: it is cut short.
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

  /// Whether a frame has a size of its own: the beginning of `uncompressed_header`, as far as that flag.
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
