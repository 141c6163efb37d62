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
  /// One opening of the file. Data read through it does not apply to a later opening.
  final class Opening: Sendable {
    let pool: DatabasePool
    let identity: FileIdentity?
    let secret: [UInt8]
    /// The group that each reading connection enters until it is closed.
    private let readers = DispatchGroup()

    init(_ path: String, _ configuration: SQLiteCache.Configuration) throws {
      pool = try Self.pool(path, configuration, readers)
      secret = try pool.writeWithoutTransaction { database in
        if configuration.durability == .commit { try database.execute(sql: "PRAGMA synchronous = FULL") }
        var secret: [UInt8] = []
        try database.inTransaction(.immediate) {
          secret = try Schema.prepare(database, path: path)
          try EntryTable.repairTotal(database)
          return .commit
        }
        return secret
      }
      identity = FileIdentity(path: path)
    }

    /// Closes the reading connections, then the writing one.
    ///
    /// Only the writing connection can merge the log into the database and remove it, and only if it is closed last. This blocks
    /// the calling thread.
    func close() throws {
      pool.releaseMemory()
      // A thread of GRDB keeps its connection for a moment after it has returned its last result.
      readers.wait()
      try pool.close()
    }

    private static func pool(
      _ path: String, _ configuration: SQLiteCache.Configuration, _ readers: DispatchGroup
    ) throws -> DatabasePool {
      try FileManager.default.createDirectory(
        atPath: URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false), withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      // Another user could replace responses, or end this process: SQLite maps the file `-shm`.
      for file in FileIdentity.files(path) {
        if let ownership = FileOwnership(path: file), !ownership.isTrusted { throw ownership.error(for: file) }
      }
      if FileIdentity(path: path) == nil { FileIdentity.createEmpty(path) }
      var settings = GRDB.Configuration()
      settings.label = "etagere.sqlite"
      settings.maximumReaderCount = configuration.readers
      settings.busyMode = .timeout(Double(configuration.busyTimeout.saturatedNanoseconds) / 1e9)
      settings.foreignKeysEnabled = false
      settings.prepareDatabase { [pageLimit = configuration.pageLimit] database in
        guard !database.configuration.readonly else {
          let reader = ReaderConnection(readers)
          // This function is never called. SQLite releases a function and its captures when it closes the connection.
          let witness = DatabaseFunction("etagere_reader", argumentCount: 0) { _ in withExtendedLifetime(reader) { nil } }
          return database.add(function: witness)
        }
        if let pageLimit { try database.execute(sql: "PRAGMA max_page_count = \(pageLimit)") }
        // This affects only a new database.
        try database.execute(sql: "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL")
      }
      // When two processes create the same database, they can collide while it is switched to the write-ahead log. SQLite does
      // not wait then.
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

  /// A member of a group for its lifetime.
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
