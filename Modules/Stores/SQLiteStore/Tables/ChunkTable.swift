#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The bodies in chunks of 64 KiB. The last chunk of a body can be shorter, and an empty body has no chunks.
enum ChunkTable {
  static let size = 65_536
  /// The number of bits in a chunk's key that count its entry's chunks. The entry's number is in the bits above.
  private static let bits: Int64 = 24
  static let bodyLimit = Int64(size) << (bits - 1)

  /// The numbers of entries whose chunks have keys of their own. A damaged database can have any number.
  static let entries: ClosedRange<Int64> = 1...(1 << (63 - bits) - 1)

  static func place(_ entry: Int64, _ number: Int64) -> Int64 { entry << bits | number }

  private static func checksum(_ bytes: Data, _ revision: Revision, _ number: Int64) -> Int64 {
    var checksum = Checksum()
    checksum.add(revision)
    checksum.add(number)
    checksum.add(bytes)
    return Int64(checksum.value)
  }

  static func insert(_ database: Database, _ bytes: Data, _ entry: Int64, _ revision: Revision, number: Int64) throws {
    try database.cachedStatement(sql: "INSERT INTO chunk (place, checksum, bytes) VALUES (?, ?, ?)")
      .execute(arguments: [place(entry, number), checksum(bytes, revision, number), bytes])
  }

  /// Inserts bytes, starting with chunk `number`.
  ///
  /// - Returns: The number of chunks inserted.
  static func insertAll(
    _ database: Database, _ bytes: Data, _ entry: Int64, _ revision: Revision, from number: Int64
  ) throws -> Int64 {
    var rest = bytes
    var next = number
    while !rest.isEmpty {
      try insert(database, Data(rest.prefix(size)), entry, revision, number: next)
      rest = rest.dropFirst(size)
      next += 1
    }
    return next - number
  }

  /// Reads and checks the bytes of `range` in a body of `length` bytes. Returns `nil` if they are damaged or missing.
  static func read(
    _ database: Database, _ entry: Int64, _ revision: Revision, _ range: Range<Int64>, of length: Int64
  ) throws -> Data? {
    guard !range.isEmpty else { return Data() }
    var number = range.lowerBound / Int64(size)
    let last = (range.upperBound - 1) / Int64(size)
    let start = number * Int64(size)
    var whole = Data(capacity: Int((last - number + 1) * Int64(size)))
    let rows = try Row.fetchCursor(
      database.cachedStatement(sql: "SELECT place, checksum, bytes FROM chunk WHERE place BETWEEN ? AND ? ORDER BY place"),
      arguments: [place(entry, number), place(entry, last)])
    while let row = try rows.next() {
      let expected = min(Int64(size), length - number * Int64(size))
      guard row.integer(0) == place(entry, number), let bytes = row.data(2), bytes.count == expected,
        row.integer(1) == checksum(bytes, revision, number)
      else { return nil }
      whole.append(bytes)
      number += 1
    }
    guard number == last + 1 else { return nil }
    return whole.subdata(in: Int(range.lowerBound - start)..<Int(range.upperBound - start))
  }

  /// Removes up to `limit` chunks of an entry.
  ///
  /// - Returns: Whether none is left.
  static func remove(_ database: Database, _ entry: Int64, limit: Int64 = 1 << bits) throws -> Bool {
    guard entries.contains(entry) else { return true }
    let (first, last) = (place(entry, 0), place(entry, 1 << bits - 1))
    let statement = try database.cachedStatement(
      sql: "DELETE FROM chunk WHERE place IN (SELECT place FROM chunk WHERE place BETWEEN ? AND ? LIMIT ?)")
    try statement.execute(arguments: [first, last, limit])
    return Int64(database.changesCount) < limit
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
