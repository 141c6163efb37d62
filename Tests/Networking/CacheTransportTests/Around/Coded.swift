#if ContentDecoding
import CEtagereZlib
import Foundation

/// An encoder for test data.
enum Coded {
  /// The `windowBits` of zlib.
  enum Format: Int32, CaseIterable { case gzip = 31, zlib = 15, raw = -15 }

  static func encode(_ data: Data, _ format: Format = .gzip) -> Data {
    var stream = z_stream()
    guard
      deflateInit2_(
        &stream, 6, Z_DEFLATED, format.rawValue, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return Data() }
    defer { deflateEnd(&stream) }
    var input = Array(data)
    var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(data.count))) + 64)
    let written = input.withUnsafeMutableBufferPointer { input in
      output.withUnsafeMutableBufferPointer { output in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(output.count)
        deflate(&stream, Z_FINISH)
        return output.count - Int(stream.avail_out)
      }
    }
    return Data(output[..<written])
  }

  /// Returns text that compresses to about a third and encodes its position.
  static func text(_ count: Int) -> Data {
    var random = Seeded(UInt64(count))
    return Data((0..<count).map { _ in UInt8.random(in: 97...104, using: &random) })
  }
}
#endif
