#if Redis
/// The hash slot of a key in a cluster: the CRC16 of its hash tag, modulo 16,384 (Redis cluster specification, "Key distribution
/// model").
enum HashSlot {
  static let count = 16_384

  private static let table: [UInt16] = (0..<256).map { byte in
    (0..<8).reduce(UInt16(byte) << 8) { crc, _ in crc & 0x8000 == 0 ? crc << 1 : crc << 1 ^ 0x1021 }
  }

  static func of(_ tag: some Sequence<UInt8>) -> Int {
    Int(tag.reduce(UInt16(0)) { crc, byte in crc << 8 ^ table[Int(crc >> 8 ^ UInt16(byte))] }) % count
  }
}
#endif
