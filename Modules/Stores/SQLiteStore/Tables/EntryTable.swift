#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The entries. Lookups find those without `until`. The others are being written or wait for their last reader, and are removed
/// after that time.
enum EntryTable {
  /// The maximum size in bytes of an entry's metadata.
  static let metadataLimit = 4 << 20
  static let keyLimit = 64 << 20

  /// An empty blob is bound as NULL.
  private static let isKey =
    "resource = ifnull(?, x'') AND variant = ifnull(?, x'') AND transform = ifnull(?, x'') AND until IS NULL"

  private static func arguments(_ key: CacheKey) -> StatementArguments {
    [Data(key.resource.utf8), Data(key.variant.utf8), Data(key.transform.utf8)]
  }

  // MARK: Lookup

  enum Found {
    case entry(EntryRow)
    case damaged(Int64)
    case nothing
  }

  private static func found(_ row: Row) -> Found {
    EntryRow(row).map { .entry($0) } ?? .damaged(row.integer(0) ?? -1)
  }

  static func find(_ database: Database, _ key: CacheKey) throws -> Found {
    let statement = try database.cachedStatement(sql: "SELECT \(EntryRow.columns) FROM entry WHERE \(isKey)")
    return try Row.fetchOne(statement, arguments: arguments(key)).map(found) ?? .nothing
  }

  static func find(_ database: Database, _ id: Int64) throws -> Found {
    let statement = try database.cachedStatement(
      sql: "SELECT \(EntryRow.columns) FROM entry WHERE id = ? AND until IS NULL")
    return try Row.fetchOne(statement, arguments: [id]).map(found) ?? .nothing
  }

  static func variants(_ database: Database, of resource: String) throws -> [Found] {
    let statement = try database.cachedStatement(
      sql: "SELECT \(EntryRow.columns) FROM entry WHERE resource = ifnull(?, x'') AND transform = x'' AND until IS NULL")
    return try Row.fetchAll(statement, arguments: [Data(resource.utf8)]).map(found)
  }

  static func transforms(_ database: Database, of resource: String) throws -> [Found] {
    let statement = try database.cachedStatement(
      sql: "SELECT \(EntryRow.columns) FROM entry WHERE resource = ifnull(?, x'') AND transform <> x'' AND until IS NULL")
    return try Row.fetchAll(statement, arguments: [Data(resource.utf8)]).map(found)
  }

  /// Calls `body` with each entry that lookups can find.
  static func each(_ database: Database, _ body: (Found) throws -> Void) throws {
    let rows = try Row.fetchCursor(
      database.cachedStatement(sql: "SELECT \(EntryRow.columns) FROM entry WHERE until IS NULL"))
    while let row = try rows.next() { try body(found(row)) }
  }

  static func total(_ database: Database) throws -> (entries: Int, bytes: Int64) {
    let row = try Row.fetchOne(database.cachedStatement(sql: "SELECT entries, bytes FROM total"))
    // An unreadable total exceeds every limit, and is then counted again.
    return (Int(row?.integer(0) ?? 0), row?.integer(1) ?? .max)
  }

  /// Makes the total that of the entries. It does not overflow with sizes that no entry has.
  private static func recount(_ database: Database) throws {
    try database.execute(
      sql: """
        DELETE FROM total;
        INSERT INTO total (entries, bytes) SELECT count(*), CAST(total(size) AS INTEGER) FROM entry WHERE until IS NULL
        """)
  }

  /// Counts the entries again if the total is damaged: it exceeds the size of the database, which contains all bytes that count.
  static func repairTotal(_ database: Database) throws {
    let (entries, bytes) = try total(database)
    let pages = try Int64.fetchOne(database, sql: "PRAGMA page_count") ?? 0
    let pageSize = try Int64.fetchOne(database, sql: "PRAGMA page_size") ?? 0
    guard bytes < 0 || bytes > pages * pageSize || entries < 0 || entries > bytes else { return }
    try recount(database)
  }

  // MARK: Storing

  /// Inserts an entry whose body arrives in several transactions. Lookups do not find it yet.
  static func reserve(_ database: Database, until: Timestamp) throws -> Int64 {
    try database.cachedStatement(
      sql: """
        INSERT INTO entry (resource, variant, transform, metadata, revision, length, checksum, size, used, until)
        VALUES (x'', x'', x'', x'', x'', 0, 0, 0, 0, ?)
        """
    ).execute(arguments: [until.nanoseconds])
    return database.lastInsertedRowID
  }

  /// Extends the deadline of an entry that is being written. Returns whether the entry still exists.
  static func extend(_ database: Database, _ id: Int64, until: Timestamp) throws -> Bool {
    try database.cachedStatement(sql: "UPDATE entry SET until = ? WHERE id = ? AND until IS NOT NULL")
      .execute(arguments: [until.nanoseconds, id])
    return database.changesCount == 1
  }

  /// Makes the entry that was reserved as `id` visible.
  static func publish(_ database: Database, _ id: Int64, _ key: CacheKey, _ metadata: StoredMetadata, used: Timestamp) throws {
    let payload = metadata.encoded()
    let length = metadata.bodyLength ?? 0
    try database.cachedStatement(
      sql: """
        UPDATE entry SET resource = ifnull(?, x''), variant = ifnull(?, x''), transform = ifnull(?, x''), metadata = ?, revision = ?,
          length = ?, checksum = ?, size = ?, used = ?, until = NULL WHERE id = ?
        """
    ).execute(
      arguments: arguments(key) + [
        payload, EntryRow.tag(metadata.revision), length, EntryRow.checksum(key, payload, metadata.revision, length),
        size(key, payload, length), used.nanoseconds, id,
      ])
  }

  /// Returns the size in bytes that counts against the limit.
  static func size(_ key: CacheKey, _ payload: Data, _ length: Int64) -> Int64 {
    Int64(key.resource.utf8.count + key.variant.utf8.count + key.transform.utf8.count + payload.count) + length
  }

  static func updateMetadata(_ database: Database, _ entry: EntryRow, _ metadata: StoredMetadata, used: Timestamp) throws {
    let payload = metadata.encoded()
    try database.cachedStatement(sql: "UPDATE entry SET metadata = ?, checksum = ?, size = ?, used = ? WHERE id = ?").execute(
      arguments: [
        payload, EntryRow.checksum(entry.key, payload, metadata.revision, entry.length),
        size(entry.key, payload, entry.length), used.nanoseconds, entry.id,
      ])
  }

  static func use(_ database: Database, _ id: Int64, at time: Timestamp) throws {
    try database.cachedStatement(sql: "UPDATE entry SET used = ? WHERE id = ? AND until IS NULL")
      .execute(arguments: [time.nanoseconds, id])
  }

  // MARK: Removing

  /// The time at which the bytes of a discarded entry may be deleted.
  struct RetentionDeadline {
    /// The size up to which bodies are read with their entry, so that no reader needs them later.
    let small: Int64
    let now: Timestamp
    /// The deadline for larger bodies.
    let end: Timestamp

    fileprivate static let sql = "until = iif(length > ?, ?, ?)"
    fileprivate var arguments: StatementArguments { [small, end.nanoseconds, now.nanoseconds] }
  }

  /// Hides an entry from lookups. Its bytes stay for readers that have opened it.
  ///
  /// - Returns: Whether the entry was visible.
  @discardableResult
  static func discard(_ database: Database, _ id: Int64, _ retention: RetentionDeadline) throws -> Bool {
    try database.cachedStatement(sql: "UPDATE entry SET \(RetentionDeadline.sql) WHERE id = ? AND until IS NULL")
      .execute(arguments: retention.arguments + [id])
    return database.changesCount == 1
  }

  static func discard(_ database: Database, _ key: CacheKey, _ retention: RetentionDeadline) throws {
    try database.cachedStatement(sql: "UPDATE entry SET \(RetentionDeadline.sql) WHERE \(isKey)")
      .execute(arguments: retention.arguments + arguments(key))
  }

  static func discardAll(_ database: Database, _ retention: RetentionDeadline) throws {
    try database.execute(sql: "UPDATE entry SET \(RetentionDeadline.sql) WHERE until IS NULL", arguments: retention.arguments)
  }

  /// Discards the least recently used entries, except `spared`, until the total size is at most `bytes`.
  ///
  /// - Returns: The number of discarded entries.
  static func shrink(_ database: Database, to bytes: Int64, sparing spared: Int64?, _ retention: RetentionDeadline) throws -> Int
  {
    guard try total(database).bytes > bytes else { return 0 }
    try repairTotal(database)
    var count = 0
    while try total(database).bytes > bytes {
      let oldest = try Int64.fetchOne(
        database.cachedStatement(sql: "SELECT id FROM entry WHERE until IS NULL AND id <> ? ORDER BY used, id LIMIT 1"),
        arguments: [spared ?? -1])
      guard let oldest else {
        // Only a damaged total exceeds the limit without an entry.
        try recount(database)
        break
      }
      try discard(database, oldest, retention)
      count += 1
    }
    return count
  }

  /// Returns discarded entries whose deadline has passed, the earliest first.
  static func collectable(_ database: Database, at now: Timestamp, limit: Int) throws -> [Int64] {
    try Int64.fetchAll(
      database.cachedStatement(sql: "SELECT id FROM entry WHERE until <= ? ORDER BY until LIMIT ?"),
      arguments: [now.nanoseconds, limit])
  }

  static func delete(_ database: Database, _ id: Int64) throws {
    try database.cachedStatement(sql: "DELETE FROM entry WHERE id = ?").execute(arguments: [id])
  }
}

extension EntryRow {
  static let columns = "id, resource, variant, transform, metadata, revision, length, checksum"

  /// Decodes a row, or returns `nil` if it is damaged.
  init?(_ row: Row) {
    guard let id = row.integer(0), let resource = row.data(1), let variant = row.data(2), let transform = row.data(3),
      let payload = row.data(4), let tag = row.data(5), let length = row.integer(6), let checksum = row.integer(7)
    else { return nil }
    self.init(
      id: id, resource: resource, variant: variant, transform: transform, payload: payload, tag: tag, length: length,
      checksum: checksum)
  }
}

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
