#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A PNG built from bytes, with any color type, to test files that encoders do not write. Uncompressed (deflate's
/// stored blocks).
package struct PNGFile {
  package var width: Int
  package var height: Int
  package var depth: UInt8
  /// 0: gray, 2: RGB, 3: palette, 4: gray and alpha, 6: RGBA.
  package var colorType: UInt8
  /// Each row without its filter byte.
  package var rows: [[UInt8]]
  /// The type and content of the chunks between the header and the pixels.
  package var chunks: [(String, [UInt8])]

  package init(
    width: Int, height: Int, depth: UInt8 = 8, colorType: UInt8, rows: [[UInt8]], chunks: [(String, [UInt8])] = []
  ) {
    (self.width, self.height, self.depth, self.colorType) = (width, height, depth, colorType)
    (self.rows, self.chunks) = (rows, chunks)
  }

  package var data: Data {
    var file = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    file += Self.chunk("IHDR", Self.number(width) + Self.number(height) + [depth, colorType, 0, 0, 0])
    for (kind, content) in chunks { file += Self.chunk(kind, content) }
    file += Self.chunk("IDAT", Self.zlib(rows.flatMap { [0] + $0 }))
    return file + Self.chunk("IEND", [])
  }

  /// Returns a zlib stream of the bytes, in stored blocks.
  package static func zlib(_ bytes: [UInt8]) -> [UInt8] {
    var stream: [UInt8] = [0x78, 0x01]
    var rest = bytes[...]
    repeat {
      let block = rest.prefix(65_535)
      rest = rest.dropFirst(block.count)
      let (low, high) = (UInt8(block.count & 0xFF), UInt8(block.count >> 8))
      stream += [rest.isEmpty ? 1 : 0, low, high, ~low, ~high] + block
    } while !rest.isEmpty
    var (a, b) = (1, 0)
    for byte in bytes {
      a = (a + Int(byte)) % 65_521
      b = (b + a) % 65_521
    }
    return stream + number(b << 16 | a)
  }

  /// Returns a chunk with its length and its checksum.
  package static func chunk(_ kind: String, _ content: [UInt8]) -> Data {
    let body = Array(kind.utf8) + content
    return Data(number(content.count) + body + number(Int(crc(body))))
  }

  /// Returns a number in four bytes, the most significant one first.
  package static func number(_ value: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) } }

  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte)) { crc, _ in crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
  }

  private static func crc(_ bytes: [UInt8]) -> UInt32 {
    table.withUnsafeBufferPointer { table in
      var crc = UInt32.max
      for byte in bytes { crc = crc >> 8 ^ table[Int((crc ^ UInt32(byte)) & 0xFF)] }
      return ~crc
    }
  }
}
