#if SQLite
internal import CacheCore
internal import GRDB

/// The conversion of SQLite's errors to `CacheError`.
enum SQLiteError {
  /// Whether the error means that the database is damaged.
  static func isDamage(_ error: any Error) -> Bool {
    guard let error = error as? DatabaseError else { return false }
    return [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
  }

  static func isBusy(_ error: any Error) -> Bool {
    guard let error = error as? DatabaseError else { return false }
    return [.SQLITE_BUSY, .SQLITE_LOCKED].contains(error.resultCode)
  }

  static func error(_ error: any Error, path: String) -> CacheError {
    if let error = error as? CacheError { return error }
    guard let failure = error as? DatabaseError else {
      return CacheError(.fileSystem, reason: "\(error)", path: path, underlying: error)
    }
    let text = failure.message ?? "SQLite error \(failure.extendedResultCode.rawValue)"
    let (code, reason): (CacheError.Code, String) =
      switch failure.resultCode {
      case .SQLITE_FULL: (.diskFull, "no space left for the database: \(text)")
      case .SQLITE_READONLY: (.readOnly, "the database is not writable: \(text)")
      case .SQLITE_BUSY, .SQLITE_LOCKED: (.timedOut, "another process has the database locked: \(text)")
      case .SQLITE_CORRUPT, .SQLITE_NOTADB: (.damagedEntry, "the database is damaged: \(text)")
      case .SQLITE_TOOBIG: (.entryTooLarge, "the entry is too large for SQLite: \(text)")
      default: (.fileSystem, "SQLite error \(failure.extendedResultCode.rawValue): \(text)")
      }
    return CacheError(code, reason: reason, path: path, underlying: error)
  }
}
#endif
