#if SQLite
internal import CacheCore
internal import Dispatch
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
    /// Entered by each connection that reads, until it is closed.
    private let readers = DispatchGroup()

    init(_ path: String, _ configuration: SQLiteCache.Configuration) throws {
      pool = try Self.pool(path, configuration, readers)
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

    /// Closes the connections that read, then the one that writes.
    ///
    /// Only the writing connection can fold the log into the database and remove it, and only if it is closed last.
    /// Blocks the calling thread.
    func close() throws {
      pool.releaseMemory()
      // A thread of GRDB holds its connection for a moment after it has given its last result.
      readers.wait()
      try pool.close()
    }

    private static func pool(
      _ path: String, _ configuration: SQLiteCache.Configuration, _ readers: DispatchGroup
    ) throws -> DatabasePool {
      try FileManager.default.createDirectory(
        atPath: URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false), withIntermediateDirectories: true)
      var settings = GRDB.Configuration()
      settings.label = "etagere.sqlite"
      settings.maximumReaderCount = configuration.readers
      settings.busyMode = .timeout(Double(configuration.busyTimeout.saturatedNanoseconds) / 1e9)
      settings.foreignKeysEnabled = false
      settings.prepareDatabase { [pageLimit = configuration.pageLimit] database in
        guard !database.configuration.readonly else {
          let reader = ReaderConnection(readers)
          // Never called. SQLite releases a function, and what it captures, when it closes the connection.
          let witness = DatabaseFunction("etagere_reader", argumentCount: 0) { _ in withExtendedLifetime(reader) { nil } }
          return database.add(function: witness)
        }
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

  /// Stays in a group for as long as it lives.
  private final class ReaderConnection: Sendable {
    private let group: DispatchGroup

    init(_ group: DispatchGroup) {
      self.group = group
      group.enter()
    }

    deinit { group.leave() }
  }
}
#endif
