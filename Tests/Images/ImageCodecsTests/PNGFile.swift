#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A PNG built from bytes, with any color type, to test files that encoders do not write. Uncompressed (deflate's
/// stored blocks).
struct PNGFile {
  var width: Int
  var height: Int
  var depth: UInt8 = 8
  /// 0: gray, 2: RGB, 3: palette, 4: gray and alpha, 6: RGBA.
  var colorType: UInt8
  /// Each row without its filter byte.
  var rows: [[UInt8]]
  /// The type and content of the chunks between the header and the pixels.
  var chunks: [(String, [UInt8])] = []

  var data: Data {
    var file = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    file += Self.chunk("IHDR", Self.number(width) + Self.number(height) + [depth, colorType, 0, 0, 0])
    for (kind, content) in chunks { file += Self.chunk(kind, content) }
    file += Self.chunk("IDAT", Self.zlib(rows.flatMap { [0] + $0 }))
    return file + Self.chunk("IEND", [])
  }

  static func zlib(_ bytes: [UInt8]) -> [UInt8] {
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

  static func chunk(_ kind: String, _ content: [UInt8]) -> Data {
    let body = Array(kind.utf8) + content
    return Data(number(content.count) + body + number(Int(crc(body))))
  }

  static func number(_ value: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) } }

  private static func crc(_ bytes: [UInt8]) -> UInt32 {
    var crc: UInt32 = 0xFFFF_FFFF
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    }
    return ~crc
  }
}
