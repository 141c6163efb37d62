#if Redis
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The chunks of a body in its own key. Each field is the number of a chunk, and each value has the bytes and their CRC32C.
enum BodyChunks {
  static let size = 65_536
  /// The number of chunks that one read returns.
  private static let readCount: Int64 = 4

  static func count(of length: Int64) -> Int64 { (length + Int64(size) - 1) / Int64(size) }

  /// The end of a read that begins at `offset`.
  static func endOfRead(from offset: Int64) -> Int64 { (offset / Int64(size) + readCount) * Int64(size) }

  /// The checksum covers the body's identifier and the number of the chunk, so that a chunk of another body is found damaged.
  private static func checksum(_ bytes: UnsafeRawBufferPointer, _ id: String, _ number: Int64) -> UInt32 {
    var writer = ByteWriter()
    writer.text(id)
    writer.integer(number)
    return crc32c(bytes, after: writer.bytes.withUnsafeBytes { crc32c($0) })
  }

  /// Returns the values that store bytes as chunks, starting with chunk `number`.
  static func framed(_ bytes: Data, from number: Int64, _ id: String) -> [(number: Int64, value: Data)] {
    stride(from: 0, to: bytes.count, by: size).enumerated().map { index, start in
      let chunk = bytes.dropFirst(start).prefix(size)
      var framed = Data(capacity: chunk.count + 4)
      framed.append(chunk)
      let sum = chunk.withUnsafeBytes { checksum($0, id, number + Int64(index)) }
      withUnsafeBytes(of: sum.littleEndian) { framed.append(contentsOf: $0) }
      return (number + Int64(index), framed)
    }
  }

  /// The numbers of the chunks that contain the bytes of `range`, which is not empty.
  static func numbers(of range: Range<Int64>) -> ClosedRange<Int64> {
    range.lowerBound / Int64(size)...(range.upperBound - 1) / Int64(size)
  }

  /// Returns the bytes of `range` in a body of `length` bytes, from the values of its chunks. Returns `nil` if a chunk is damaged
  /// or missing.
  static func bytes(_ range: Range<Int64>, of length: Int64, _ id: String, in values: [RESPValue]) -> [Data]? {
    let numbers = numbers(of: range)
    guard values.count == numbers.count else { return nil }
    var chunks: [Data] = []
    for (number, value) in zip(numbers, values) {
      let start = number * Int64(size)
      let count = Int(min(Int64(size), length - start))
      guard let framed = value.bytes, framed.count == count + 4, isIntact(framed, id, number) else { return nil }
      let wanted = range.clamped(to: start..<start + Int64(count))
      chunks.append(
        wanted.lowerBound == start
          ? framed.prefix(Int(wanted.upperBound - start))
          : framed.subdata(in: Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)))
    }
    return chunks
  }

  private static func isIntact(_ framed: Data, _ id: String, _ number: Int64) -> Bool {
    framed.withUnsafeBytes { bytes in
      let end = bytes.count - 4
      let expected = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: end, as: UInt32.self))
      return checksum(UnsafeRawBufferPointer(rebasing: bytes[..<end]), id, number) == expected
    }
  }
}
#endif
