#if SQLite
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// The checks of what a row contains, apart from the statements that read it. A damaged database can have any value in any column.

/// An entry that is intact apart from its body, which is not checked here.
struct EntryRow: Sendable {
  let id: Int64
  let key: CacheKey
  let metadata: StoredMetadata
  let length: Int64

  /// Decodes the columns of a row, or returns `nil` if they are damaged.
  init?(
    id: Int64, resource: Data, variant: Data, transform: Data, payload: Data, tag: Data, length: Int64, checksum: Int64
  ) {
    guard ChunkRow.entries.contains(id), (0...ChunkRow.bodyLimit).contains(length),
      let resource = String(validating: resource, as: UTF8.self), let variant = String(validating: variant, as: UTF8.self),
      let transform = String(validating: transform, as: UTF8.self), let revision = Self.revision(tag)
    else { return nil }
    let key = CacheKey(resource: resource, variant: variant, transform: transform)
    guard checksum == Self.checksum(key, payload, revision, length),
      let metadata = StoredMetadata(decoding: payload), metadata.revision == revision, metadata.bodyLength == length
    else { return nil }
    (self.id, self.key, self.metadata, self.length) = (id, key, metadata, length)
  }

  static func checksum(_ key: CacheKey, _ payload: Data, _ revision: Revision, _ length: Int64) -> Int64 {
    var checksum = Checksum()
    for text in [key.resource, key.variant, key.transform] {
      checksum.add(Int64(text.utf8.count))
      checksum.add(Data(text.utf8))
    }
    checksum.add(revision)
    checksum.add(length)
    checksum.add(payload)
    return Int64(checksum.value)
  }

  static func tag(_ revision: Revision) -> Data {
    var writer = ByteWriter()
    writer.integer(revision.high)
    writer.integer(revision.low)
    return Data(writer.bytes)
  }

  private static func revision(_ tag: Data) -> Revision? {
    tag.withUnsafeBytes { bytes in
      var reader = RawByteReader(bytes)
      guard bytes.count == 16, let high = reader.integer(UInt64.self), let low = reader.integer(UInt64.self) else { return nil }
      return Revision(high: high, low: low)
    }
  }
}

/// A chunk of a body. Every chunk has 64 KiB. The last one of a body can be shorter, and an empty body has no chunks.
struct ChunkRow {
  static let size = 65_536
  /// The number of bits in a chunk's key that count its entry's chunks. The entry's number is in the bits above.
  private static let bits: Int64 = 24
  /// The maximum number of chunks of an entry.
  static let limit: Int64 = 1 << bits
  static let bodyLimit = Int64(size) << (bits - 1)

  /// The numbers of entries whose chunks have keys of their own.
  static let entries: ClosedRange<Int64> = 1...(1 << (63 - bits) - 1)

  let place: Int64
  let checksum: Int64
  let bytes: Data

  init(_ bytes: Data, _ entry: Int64, _ revision: Revision, number: Int64) {
    place = Self.place(entry, number)
    checksum = Self.checksum(bytes, revision, number)
    self.bytes = bytes
  }

  static func place(_ entry: Int64, _ number: Int64) -> Int64 { entry << bits | number }

  fileprivate static func checksum(_ bytes: Data, _ revision: Revision, _ number: Int64) -> Int64 {
    var checksum = Checksum()
    checksum.add(revision)
    checksum.add(number)
    checksum.add(bytes)
    return Int64(checksum.value)
  }
}

/// The bytes of a range of a body, which are collected from the chunks in order.
struct ChunkedRange {
  private let entry: Int64
  private let revision: Revision
  private let range: Range<Int64>
  /// The length of the body in bytes.
  private let length: Int64
  /// The numbers of the chunks.
  private let numbers: ClosedRange<Int64>
  private var next: Int64
  private var collected: Data

  /// - Parameter range: The bytes, at least one.
  init(_ range: Range<Int64>, of length: Int64, _ entry: Int64, _ revision: Revision) {
    (self.range, self.length, self.entry, self.revision) = (range, length, entry, revision)
    numbers = range.lowerBound / Int64(ChunkRow.size)...(range.upperBound - 1) / Int64(ChunkRow.size)
    next = numbers.lowerBound
    collected = Data(capacity: numbers.count * ChunkRow.size)
  }

  /// The keys of the first and the last chunk.
  var places: ClosedRange<Int64> { ChunkRow.place(entry, numbers.lowerBound)...ChunkRow.place(entry, numbers.upperBound) }

  /// Adds the columns of the next row. Returns `false` if they are damaged or of another chunk.
  mutating func add(place: Int64?, checksum: Int64?, bytes: Data?) -> Bool {
    let expected = min(Int64(ChunkRow.size), length - next * Int64(ChunkRow.size))
    guard place == ChunkRow.place(entry, next), let bytes, bytes.count == expected,
      checksum == ChunkRow.checksum(bytes, revision, next)
    else { return false }
    collected.append(bytes)
    next += 1
    return true
  }

  /// The bytes of the range, or `nil` if a chunk is missing.
  var bytes: Data? {
    guard next == numbers.upperBound + 1 else { return nil }
    let start = numbers.lowerBound * Int64(ChunkRow.size)
    return collected.subdata(in: Int(range.lowerBound - start)..<Int(range.upperBound - start))
  }
}

/// A CRC32C checksum over several pieces in sequence.
struct Checksum {
  private(set) var value: UInt32 = 0

  mutating func add(_ bytes: UnsafeRawBufferPointer) { value = crc32c(bytes, after: value) }

  mutating func add(_ data: Data) { data.withUnsafeBytes { add($0) } }

  mutating func add(_ number: some FixedWidthInteger) { withUnsafeBytes(of: number.littleEndian) { add($0) } }

  mutating func add(_ revision: Revision) {
    add(revision.high)
    add(revision.low)
  }
}
#endif
