#if SQLite
public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A durable store in one SQLite database: the second of the stores that keep what they have, for who wants one file, or a
/// database's tools.
///
/// ```swift
/// let cache = try SQLiteCache(folder: url, configuration: .init(sizeLimit: 1 << 30))
/// try await cache.store(bytes, for: key, metadata: metadata)
/// if let entry = try await cache.entry(for: key) { print(try await entry.body.collect().count) }
/// ```
///
/// Bodies go in and out in pieces of 64 KiB, each with a checksum. An entry becomes visible, and takes the place of the one
/// before it, in one transaction. Several caches, in one process or in many, may share a folder. A database that is damaged, or
/// was removed, is made anew.
///
/// No call blocks the caller: the database's connections have threads of their own. They end what they began when the calling
/// task is cancelled.
public final class SQLiteCache: CacheStore {
  let engine: SQLiteEngine

  /// A cache in `folder`, which is made when it is not there. The database is `etagere-1.sqlite` in it, with the files that
  /// SQLite puts beside it; nothing else in the folder is touched.
  ///
  /// Opens the database before it returns, in the caller's thread. A damaged one is made anew, which ``SQLiteCounters/resets``
  /// tells.
  ///
  /// - Throws: `CacheError.Code.unsupported` for a database of a later version or of another program, which is left alone;
  ///   `CacheError.Code.fileSystem`, `CacheError.Code.diskFull` or `CacheError.Code.readOnly` with the path when it can't be
  ///   opened or made; `CacheError.Code.timedOut` when another process keeps it locked; `CacheError.Code.invalidConfiguration`
  ///   when a setting, or the URL, makes no sense.
  public convenience init(folder: URL, configuration: Configuration = Configuration()) throws(CacheError) {
    guard folder.isFileURL else {
      throw CacheError(.invalidConfiguration, reason: "a store's folder needs a file URL", url: folder.absoluteString)
    }
    try self.init(path: folder.path(percentEncoded: false), configuration: configuration)
  }

  /// A cache in the folder at `path`; see ``init(folder:configuration:)``.
  public init(path: String, configuration: Configuration = Configuration()) throws(CacheError) {
    try configuration.validate()
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "a store's folder needs a path without NUL", path: path)
    }
    let folder = URL(filePath: path, directoryHint: .isDirectory)
    engine = try SQLiteEngine(folder.appending(path: "etagere-1.sqlite").path(percentEncoded: false), configuration)
    digestSecret = engine.file.secret
    // Nobody can tell whether two clocks go alike, unless both are the system's.
    id =
      configuration.clock is SystemClock
      ? ComponentID(SQLiteCache.self, parameters: "\(configuration.expiration) \(engine.file.path)")
      : .unique(SQLiteCache.self)
    engine.startCollecting()
  }

  /// Caches on one database answer alike when they have the same time to live and both go by the system's clock.
  public let id: ComponentID

  /// 16 secret bytes that stay the same for as long as the database lives, in every process.
  ///
  /// For keyed digests of what must not be stored itself: secret request fields in variants stay comparable after a restart.
  public let digestSecret: [UInt8]

  /// The database's path.
  public var path: String { engine.file.path }

  /// How it was set up.
  public var configuration: Configuration { engine.configuration }

  /// What this object did so far.
  public var counters: SQLiteCounters { engine.counters }
}
#endif
