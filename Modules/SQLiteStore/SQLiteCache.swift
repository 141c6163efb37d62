#if SQLite
public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A durable store in a single SQLite database, for caches that need one file or a database's tools.
///
/// ```swift
/// let cache = try SQLiteCache(folder: url, configuration: .init(sizeLimit: 1 << 30))
/// try await cache.store(bytes, for: key, metadata: metadata)
/// if let entry = try await cache.entry(for: key) { print(try await entry.body.collect().count) }
/// ```
///
/// Bodies are stored in chunks of 64 KiB, each with a checksum. One transaction makes an entry visible and replaces the one
/// before it. Several caches, in one process or in many, can share a folder. A damaged or deleted database is recreated.
///
/// No call blocks its caller: the database's connections have their own threads. Cancelling the calling task does not interrupt a
/// call.
public final class SQLiteCache: CacheStore {
  let engine: SQLiteEngine

  /// Creates a cache in `folder`, and the folder if it does not exist. The database is `etagere-1.sqlite`, with the files that
  /// SQLite puts beside it. Other files in the folder are not changed.
  ///
  /// The initializer opens the database on the caller's thread. A damaged database is recreated and counted in
  /// ``SQLiteCounters/resets``.
  ///
  /// - Throws: `CacheError.Code.unsupported` if the database belongs to a later version or another program; it is not changed.
  ///   `CacheError.Code.fileSystem`, `CacheError.Code.diskFull` or `CacheError.Code.readOnly`, with the path, if it cannot be
  ///   opened or created. `CacheError.Code.timedOut` if it stays locked by another process.
  ///   `CacheError.Code.invalidConfiguration` if a setting or the URL is invalid.
  public convenience init(folder: URL, configuration: Configuration = Configuration()) throws(CacheError) {
    guard folder.isFileURL else {
      throw CacheError(.invalidConfiguration, reason: "the URL of a store's folder is not a file URL", url: folder.absoluteString)
    }
    try self.init(path: folder.path(percentEncoded: false), configuration: configuration)
  }

  /// Creates a cache in the folder at `path`; see ``init(folder:configuration:)``.
  public init(path: String, configuration: Configuration = Configuration()) throws(CacheError) {
    try configuration.validate()
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "the path of a store's folder is empty or contains NUL", path: path)
    }
    let folder = URL(filePath: path, directoryHint: .isDirectory)
    engine = try SQLiteEngine(folder.appending(path: "etagere-1.sqlite").path(percentEncoded: false), configuration)
    // An open database has a secret of 16 bytes.
    digestSecret = DigestSecret(bytes: engine.file.secret) ?? .random()
    // Two custom clocks cannot be compared, so only caches on the system clock can have equal identifiers.
    id =
      configuration.clock is SystemClock
      ? ComponentID(SQLiteCache.self, parameters: "\(configuration.expiration) \(engine.file.path)")
      : .unique(SQLiteCache.self)
    engine.startCollecting()
  }

  /// An identifier that is equal for caches with the same database and time to live that use the system clock.
  public let id: ComponentID

  /// The secret for the validator, which stays the same for the database's lifetime, in every process.
  ///
  /// It keys the digests of secret request fields in variants, so variants stay comparable after a restart.
  public let digestSecret: DigestSecret

  /// The path of the database.
  public var path: String { engine.file.path }

  /// The configuration that the cache was created with.
  public var configuration: Configuration { engine.configuration }

  /// The operations of this cache since it was created.
  public var counters: SQLiteCounters { engine.counters }
}
#endif
