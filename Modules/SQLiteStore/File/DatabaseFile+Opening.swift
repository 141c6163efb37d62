#if SQLite
internal import CacheCore
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension DatabaseFile {
  /// One opening of the file: what was read through it says nothing about a later one.
  final class Opening: Sendable {
    let pool: DatabasePool
    let identity: FileIdentity?
    let secret: [UInt8]

    init(_ path: String, _ configuration: SQLiteCache.Configuration) throws {
      pool = try Self.pool(path, configuration)
      secret = try pool.writeWithoutTransaction { database in
        if configuration.durability == .commit { try database.execute(sql: "PRAGMA synchronous = FULL") }
        var secret: [UInt8] = []
        try database.inTransaction(.immediate) {
          secret = try Schema.prepare(database, path: path)
          return .commit
        }
        return secret
      }
      identity = FileIdentity(path: path)
    }

    private static func pool(_ path: String, _ configuration: SQLiteCache.Configuration) throws -> DatabasePool {
      try FileManager.default.createDirectory(
        atPath: URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false), withIntermediateDirectories: true)
      var settings = GRDB.Configuration()
      settings.label = "etagere.sqlite"
      settings.maximumReaderCount = configuration.readers
      settings.busyMode = .timeout(Double(configuration.busyTimeout.saturatedNanoseconds) / 1e9)
      settings.foreignKeysEnabled = false
      settings.prepareDatabase { [pageLimit = configuration.pageLimit] database in
        guard !database.configuration.readonly else { return }
        if let pageLimit { try database.execute(sql: "PRAGMA max_page_count = \(pageLimit)") }
        // Of effect on a new database alone.
        try database.execute(sql: "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL")
      }
      // Two processes that make the same database meet while it is switched to the log, where SQLite does not wait.
      var attempt = 1
      while true {
        do {
          return try DatabasePool(path: path, configuration: settings)
        } catch  where SQLiteError.isBusy(error) && attempt < 5 {
          attempt += 1
        }
      }
    }
  }
}
#endif
