/// The size of the frames that an HEVC sequence parameter set tells of (ITU-T H.265 §7.3.2.2).
enum HEVCSequence {
  /// - Parameter unit: a NAL unit. Nil: it is another one, or cut short.
  static func size(_ unit: some Collection<UInt8>) -> PixelSize? {
    // Kind 33, layer 0: further layers are read by nobody here. The first bit is to be 0, and decoders don't look.
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

  /// Without the bytes that keep start codes from appearing (§7.4.2). What is asked for stands at the beginning.
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
