import Foundation

/// PNG images that differ in every byte of their pixels. Image loaders decode what they load, so a text would not do.
enum TestImage {
  /// Returns an RGB image with random pixels, stored without compression.
  ///
  /// - Parameters:
  ///   - number: The seed of the pixels.
  ///   - side: The length of a side in pixels. An image has about 3 × `side` × `side` bytes, and `side` is at most 140.
  static func png(_ number: Int, side: Int = 128) -> Data {
    var random = UInt64(bitPattern: Int64(number)) &* 0x9E37_79B9_7F4A_7C15 | 1
    var pixels: [UInt8] = []
    for _ in 0..<side {
      pixels.append(0)
      for _ in 0..<side * 3 {
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        pixels.append(UInt8(truncatingIfNeeded: random >> 32))
      }
    }
    var image = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    image += chunk("IHDR", bytes(UInt32(side)) + bytes(UInt32(side)) + [8, 2, 0, 0, 0])
    // One stored block of deflate in a zlib stream.
    let count = UInt16(pixels.count)
    let head: [UInt8] = [0x78, 0x01, 0x01] + little(count) + little(~count)
    image += chunk("IDAT", head + pixels + bytes(adler32(pixels)))
    image += chunk("IEND", [])
    return image
  }

  private static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
    let typed = Array(type.utf8) + content
    return bytes(UInt32(content.count)) + typed + bytes(crc32(typed))
  }

  private static func bytes(_ number: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
  }

  private static func little(_ number: UInt16) -> [UInt8] {
    [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
  }

  private static func adler32(_ content: [UInt8]) -> UInt32 {
    var (a, b) = (UInt32(1), UInt32(0))
    for byte in content {
      a = (a + UInt32(byte)) % 65_521
      b = (b + a) % 65_521
    }
    return b << 16 | a
  }

  private static func crc32(_ content: [UInt8]) -> UInt32 {
    var crc: UInt32 = .max
    for byte in content {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    }
    return ~crc
  }
}
