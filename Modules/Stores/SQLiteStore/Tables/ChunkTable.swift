#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The bodies in chunks: see ``ChunkRow``.
enum ChunkTable {
  static func insert(_ database: Database, _ bytes: Data, _ entry: Int64, _ revision: Revision, number: Int64) throws {
    let row = ChunkRow(bytes, entry, revision, number: number)
    try database.cachedStatement(sql: "INSERT INTO chunk (place, checksum, bytes) VALUES (?, ?, ?)")
      .execute(arguments: [row.place, row.checksum, row.bytes])
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
      try insert(database, Data(rest.prefix(ChunkRow.size)), entry, revision, number: next)
      rest = rest.dropFirst(ChunkRow.size)
      next += 1
    }
    return next - number
  }

  /// Reads and checks the bytes of `range` in a body of `length` bytes. Returns `nil` if they are damaged or missing.
  static func read(
    _ database: Database, _ entry: Int64, _ revision: Revision, _ range: Range<Int64>, of length: Int64
  ) throws -> Data? {
    guard !range.isEmpty else { return Data() }
    var wanted = ChunkedRange(range, of: length, entry, revision)
    let rows = try Row.fetchCursor(
      database.cachedStatement(sql: "SELECT place, checksum, bytes FROM chunk WHERE place BETWEEN ? AND ? ORDER BY place"),
      arguments: [wanted.places.lowerBound, wanted.places.upperBound])
    while let row = try rows.next() {
      guard wanted.add(place: row.integer(0), checksum: row.integer(1), bytes: row.data(2)) else { return nil }
    }
    return wanted.bytes
  }

  /// Removes up to `limit` chunks of an entry.
  ///
  /// - Returns: Whether none is left.
  static func remove(_ database: Database, _ entry: Int64, limit: Int64 = ChunkRow.limit) throws -> Bool {
    guard ChunkRow.entries.contains(entry) else { return true }
    let (first, last) = (ChunkRow.place(entry, 0), ChunkRow.place(entry, ChunkRow.limit - 1))
    let statement = try database.cachedStatement(
      sql: "DELETE FROM chunk WHERE place IN (SELECT place FROM chunk WHERE place BETWEEN ? AND ? LIMIT ?)")
    try statement.execute(arguments: [first, last, limit])
    return Int64(database.changesCount) < limit
  }
}
#endif
