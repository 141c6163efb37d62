#if Redis
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The stored form of an entry: a small body, the description (key and metadata), and a trailer that a 304 leaves unchanged.
///
/// The body comes first, so that it can be used without a copy. A large body is in chunks in a key of its own.
///
/// | bytes | content |
/// | --- | --- |
/// | | a body of up to 64 KiB |
/// | 4 | CRC32C of the revision and the rest of the description |
/// | | resource, variant, transform and metadata, each after its count of bytes (32 bits) |
/// | 8 | size of the description in hexadecimal digits |
/// | 1 | `I` if the body is in the value, `C` if it is in chunks |
/// | 16 | identifier of the body |
/// | 16 | revision |
/// | 8 | length of the body |
/// | 4 | CRC32C of a body in the value |
/// | 8 | time at which the body was stored |
/// | 4 | CRC32C of the trailer so far, without the size of the description |
/// | 4 | `ETR1` |
///
/// Numbers are little-endian. The scripts count these positions from the end.
struct EntryRecord: Sendable {
  static let magic = "ETR1"
  private static let trailerSize = 61
  private static let sizeDigits = 8
  /// The maximum size in bytes of the key and the metadata.
  private static let descriptionLimit = 8 << 20
  /// The maximum size in bytes of a value.
  static let sizeLimit = BodyChunks.size + descriptionLimit + sizeDigits + trailerSize
  /// The maximum length in bytes of a body.
  private static let bodyLimit: Int64 = 1 << 40

  let key: CacheKey
  let metadata: StoredMetadata
  let bodyID: String
  let isChunked: Bool
  let length: Int64
  let bodyChecksum: UInt32
  let storedAt: Timestamp

  // MARK: Encoding

  /// Returns the value for an entry.
  ///
  /// - Parameters:
  ///   - body: The body, or `nil` if it is in chunks.
  ///   - length: The length of the body.
  /// - Throws: `CacheError.Code.entryTooLarge` if the key and the metadata exceed the limit.
  static func value(
    _ key: CacheKey, _ metadata: StoredMetadata, body: Data?, length: Int64, bodyID: String, storedAt: Timestamp
  ) throws(CacheError) -> Data {
    let description = try description(key, metadata)
    var trailer = ByteWriter()
    trailer.integer(UInt8(ascii: body == nil ? "C" : "I"))
    trailer.raw(bodyID.utf8)
    trailer.raw(bytes(of: metadata.revision))
    trailer.integer(length)
    trailer.integer(body.map { checksum($0) } ?? 0)
    trailer.integer(storedAt.nanoseconds)
    trailer.integer(trailer.bytes.withUnsafeBytes { crc32c($0) })
    trailer.raw(magic.utf8)
    return (body ?? Data()) + description + digits(of: description.count) + trailer.bytes
  }

  /// Returns the encoded key and metadata.
  static func description(_ key: CacheKey, _ metadata: StoredMetadata) throws(CacheError) -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(UInt32(0))
    writer.text(key.resource)
    writer.text(key.variant)
    writer.text(key.transform)
    writer.counted(metadata.encoded())
    guard writer.bytes.count <= descriptionLimit else {
      throw CacheError(.entryTooLarge, reason: "the key and the metadata are larger than \(descriptionLimit) bytes")
    }
    writer.overwrite(
      writer.bytes.withUnsafeBytes { checksum(UnsafeRawBufferPointer(rebasing: $0[4...]), after: metadata.revision) }, at: 0)
    return writer.bytes
  }

  /// Returns the size of a description as hexadecimal digits, which Lua can read.
  static func digits(of size: Int) -> [UInt8] { Array(Hexadecimal.digits(of: UInt64(size)).suffix(sizeDigits)) }

  static func bytes(of revision: Revision) -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(revision.high)
    writer.integer(revision.low)
    return writer.bytes
  }

  // MARK: Decoding

  enum Decoded {
    case entry(EntryRecord)
    case damaged
    /// A value of another schema or of another program.
    case foreign
  }

  /// Decodes a value, with or without its body. The body is not checked.
  static func decode(_ data: Data) -> Decoded { data.withUnsafeBytes { decode($0) } }

  private static func decode(_ bytes: UnsafeRawBufferPointer) -> Decoded {
    guard bytes.suffix(4).elementsEqual(magic.utf8) else { return .foreign }
    let (trailerStart, sizeStart) = (bytes.count - trailerSize, bytes.count - trailerSize - sizeDigits)
    guard sizeStart >= 0, let size = number(bytes[sizeStart..<trailerStart]), size >= 4, size <= sizeStart else {
      return .damaged
    }
    var trailer = RawByteReader(UnsafeRawBufferPointer(rebasing: bytes[trailerStart...]))
    guard let kind = trailer.integer(UInt8.self), kind == UInt8(ascii: "C") || kind == UInt8(ascii: "I"),
      let bodyID = trailer.raw(16), let high = trailer.integer(UInt64.self), let low = trailer.integer(UInt64.self),
      let length = trailer.integer(Int64.self), (0...bodyLimit).contains(length), let bodyChecksum = trailer.integer(UInt32.self),
      let storedAt = trailer.integer(Int64.self),
      trailer.integer(UInt32.self) == crc32c(UnsafeRawBufferPointer(rebasing: bytes[trailerStart..<(bytes.count - 8)]))
    else { return .damaged }
    let revision = Revision(high: high, low: low)
    var description = RawByteReader(UnsafeRawBufferPointer(rebasing: bytes[(sizeStart - size)..<sizeStart]))
    let expected = checksum(UnsafeRawBufferPointer(rebasing: bytes[(sizeStart - size + 4)..<sizeStart]), after: revision)
    guard description.integer(UInt32.self) == expected, let resource = description.text(), let variant = description.text(),
      let transform = description.text(), let encoded = description.counted(), description.isAtEnd,
      var metadata = StoredMetadata(decoding: encoded), metadata.revision == revision
    else { return .damaged }
    if metadata.bodyLength != length { metadata.bodyLength = length }
    return .entry(
      EntryRecord(
        key: CacheKey(resource: resource.utf8Text, variant: variant.utf8Text, transform: transform.utf8Text),
        metadata: metadata, bodyID: bodyID.utf8Text, isChunked: kind == UInt8(ascii: "C"), length: length,
        bodyChecksum: bodyChecksum, storedAt: Timestamp(nanoseconds: storedAt)))
  }

  /// Returns the number of hexadecimal digits. Capital letters mean that a byte has changed.
  private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> Int? {
    var number = 0
    for digit in digits {
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | Int(digit - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | Int(digit - UInt8(ascii: "a") + 10)
      default: return nil
      }
    }
    return number
  }

  /// Returns the body in the value that this record was decoded from, or `nil` if it is damaged.
  func body(in value: Data) -> Data? {
    guard length <= value.count else { return nil }
    let body = value.prefix(Int(length))
    return Self.checksum(body) == bodyChecksum ? body : nil
  }

  // MARK: Checksums

  static func checksum(_ data: Data) -> UInt32 { data.withUnsafeBytes { crc32c($0) } }

  private static func checksum(_ bytes: UnsafeRawBufferPointer, after revision: Revision) -> UInt32 {
    withUnsafeBytes(of: (revision.high.littleEndian, revision.low.littleEndian)) { crc32c(bytes, after: crc32c($0)) }
  }
}

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
