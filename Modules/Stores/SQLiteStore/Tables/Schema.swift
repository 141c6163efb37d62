#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The tables, version 1, described in <doc:/SQLiteStore>.
enum Schema {
  static let version = 1
  /// "ETGR", which identifies the database to `file` and other programs.
  static let application = 0x4554_4752

  private static let tables = """
    CREATE TABLE entry (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      resource BLOB NOT NULL, variant BLOB NOT NULL, transform BLOB NOT NULL,
      metadata BLOB NOT NULL, revision BLOB NOT NULL, length INTEGER NOT NULL, checksum INTEGER NOT NULL,
      size INTEGER NOT NULL, used INTEGER NOT NULL, until INTEGER
    );
    CREATE UNIQUE INDEX entry_key ON entry (resource, variant, transform) WHERE until IS NULL;
    CREATE INDEX entry_used ON entry (used, id) WHERE until IS NULL;
    CREATE INDEX entry_until ON entry (until) WHERE until IS NOT NULL;
    CREATE TABLE chunk (place INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, bytes BLOB NOT NULL);
    CREATE TABLE total (entries INTEGER NOT NULL, bytes INTEGER NOT NULL);
    INSERT INTO total VALUES (0, 0);
    CREATE TRIGGER entry_added AFTER INSERT ON entry WHEN NEW.until IS NULL BEGIN
      UPDATE total SET entries = entries + 1, bytes = bytes + NEW.size;
    END;
    CREATE TRIGGER entry_removed AFTER DELETE ON entry WHEN OLD.until IS NULL BEGIN
      UPDATE total SET entries = entries - 1, bytes = bytes - OLD.size;
    END;
    CREATE TRIGGER entry_changed AFTER UPDATE OF until, size ON entry BEGIN
      UPDATE total SET entries = entries + (NEW.until IS NULL) - (OLD.until IS NULL),
        bytes = bytes + iif(NEW.until IS NULL, NEW.size, 0) - iif(OLD.until IS NULL, OLD.size, 0);
    END;
    CREATE TABLE secret (bytes BLOB NOT NULL);
    """

  /// Returns whether a database has no tables yet.
  ///
  /// - Throws: `CacheError.Code.unsupported` for a database of another version or of another program.
  static func isNew(_ database: Database, path: String) throws -> Bool {
    let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    let owner = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
    if version == 0, owner == 0, try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0 { return true }
    guard owner == application else {
      throw CacheError(.unsupported, reason: "the database belongs to another program", path: path)
    }
    guard version == Self.version else {
      throw CacheError(
        .unsupported, reason: "the database has version \(version), but this store supports only version \(Self.version)",
        path: path)
    }
    return false
  }

  /// Creates the tables in a new database or checks the version of an existing one, inside a transaction.
  ///
  /// - Returns: The database's 16-byte secret.
  static func prepare(_ database: Database, path: String) throws -> [UInt8] {
    if try isNew(database, path: path) {
      try database.execute(sql: tables)
      try database.execute(sql: "INSERT INTO secret VALUES (randomblob(16))")
      try database.execute(sql: "PRAGMA user_version = \(version); PRAGMA application_id = \(application)")
    }
    guard let secret = try Data.fetchOne(database, sql: "SELECT bytes FROM secret"), secret.count == 16 else {
      throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the database has no secret")
    }
    return Array(secret)
  }
}

/// Typed columns. A damaged database can have any value in any column, and a plain subscript would trap.
extension Row {
  func integer(_ index: Int) -> Int64? { Int64.fromDatabaseValue(self[index]) }

  func data(_ index: Int) -> Data? { Data.fromDatabaseValue(self[index]) }
}
#endif
