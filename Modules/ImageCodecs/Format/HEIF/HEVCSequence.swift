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
