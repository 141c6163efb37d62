#if SQLite
internal import CacheCore
internal import Dispatch
internal import GRDB

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The open database, whose calls run on its connections' threads. A damaged or deleted database is recreated.
final class DatabaseFile: Sendable {
  private struct State {
    var opening: Opening?
    var isClosed = false
    var pending = 0
    var closers: [Resumption<Void>] = []
    var resets = 0
  }

  private enum Attempt<Value: Sendable>: Sendable {
    case success(Value)
    case failure(any Error)
    /// The path now refers to another file or to none.
    case moved
  }

  let path: String
  private let configuration: SQLiteCache.Configuration
  private let state: Lock<State>
  private let maintenance = DispatchQueue(label: "etagere.sqlite.opening", qos: .userInitiated)

  init(_ path: String, _ configuration: SQLiteCache.Configuration) throws(CacheError) {
    self.path = path
    self.configuration = configuration
    state = Lock(State())
    do {
      let opening = try Opening(path, configuration)
      state.withLock { $0.opening = opening }
    } catch  where SQLiteError.isDamage(error) {
      do {
        let opening = try remake()
        state.withLock { $0.opening = opening }
      } catch {
        throw SQLiteError.error(error, path: path)
      }
    } catch {
      throw SQLiteError.error(error, path: path)
    }
  }

  var secret: [UInt8] { state.withLock { $0.opening?.secret } ?? [] }

  var resets: Int { state.withLock { $0.resets } }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Creates a new database in place of the existing files.
  private func remake() throws -> Opening {
    for file in FileIdentity.files(path) { FileIdentity.remove(file) }
    let opening = try Opening(path, configuration)
    state.withLock { $0.resets += 1 }
    return opening
  }

  // MARK: Calls

  /// Runs `work` in a transaction that sees the current state of the database.
  func read<Value: Sendable>(
    _ work: @escaping @Sendable (Database, Opening) throws -> Value
  ) async throws(CacheError) -> Value {
    try await run { [path] opening, finish in
      opening.pool.asyncRead { result in
        finish(Self.attempt(path, opening) { try work(result.get(), opening) })
      }
    }
  }

  /// Runs `work` in a write transaction, after earlier writes.
  func write<Value: Sendable>(
    _ work: @escaping @Sendable (Database, Opening) throws -> Value
  ) async throws(CacheError) -> Value {
    try await run { [path] opening, finish in
      opening.pool.asyncWriteWithoutTransaction { database in
        finish(
          Self.attempt(path, opening) {
            var value: Value?
            try database.inTransaction(.immediate) {
              value = try work(database, opening)
              return .commit
            }
            guard let value else { throw CacheError(.other, reason: "a transaction ended without a value", path: path) }
            return value
          })
      }
    }
  }

  private static func attempt<Value>(_ path: String, _ opening: Opening, _ work: () throws -> Value) -> Attempt<Value> {
    guard FileIdentity(path: path) == opening.identity else { return .moved }
    do {
      return .success(try work())
    } catch {
      return .failure(error)
    }
  }

  private func run<Value: Sendable>(
    _ start: @escaping @Sendable (Opening, @escaping @Sendable (Attempt<Value>) -> Void) -> Void
  ) async throws(CacheError) -> Value {
    try enter()
    defer { leave() }
    var isSecond = false
    while true {
      let opening = try await opened()
      let attempt = await withResumption { continuation in
        start(opening) { continuation.resume(returning: $0) }
      }
      switch attempt {
      case .success(let value): return value
      case .moved: try await replace(opening)
      case .failure(let error):
        if SQLiteError.isDamage(error) { try await replace(opening) }
        // Another call that replaced the opening may have closed this one.
        let isReplaced = state.withLock { $0.opening !== opening }
        if isSecond || !isReplaced || SQLiteError.isDamage(error) { throw SQLiteError.error(error, path: path) }
      }
      guard !isSecond else {
        throw CacheError(.fileSystem, reason: "the database was replaced twice during the call", path: path)
      }
      isSecond = true
    }
  }

  private func opened() async throws(CacheError) -> Opening {
    if let opening = state.withLock({ $0.opening }) { return opening }
    return try await reopen { [self] in
      if let opening = state.withLock({ $0.opening }) { return opening }
      return try Opening(path, configuration)
    }
  }

  /// Replaces an opening whose file is damaged or missing.
  private func replace(_ old: Opening) async throws(CacheError) {
    _ = try await reopen { [self] in
      if let current = state.withLock({ $0.opening }), current !== old { return current }
      try? old.pool.close()
      state.withLock { $0.opening = nil }
      // Another process may have recreated it already.
      if let identity = FileIdentity(path: path), identity != old.identity { return try Opening(path, configuration) }
      return try remake()
    }
  }

  private func reopen(_ open: @escaping @Sendable () throws -> Opening) async throws(CacheError) -> Opening {
    let result: Result<Opening, any Error> = await withResumption { continuation in
      maintenance.async { [self] in
        let result = Result { () throws -> Opening in
          let opening = try open()
          state.withLock { $0.opening = opening }
          return opening
        }
        continuation.resume(returning: result)
      }
    }
    do { return try result.get() } catch { throw SQLiteError.error(error, path: path) }
  }

  // MARK: The end

  private func enter() throws(CacheError) {
    try state.withLock { state throws(CacheError) in
      guard !state.isClosed else { throw CacheError(.closed, reason: "the store is closed", path: path) }
      state.pending += 1
    }
  }

  private func leave() {
    let closers = state.withLock { state in
      state.pending -= 1
      guard state.pending == 0 else { return [Resumption<Void>]() }
      defer { state.closers = [] }
      return state.closers
    }
    for closer in closers { closer.resume() }
  }

  /// Refuses new calls, waits for those in progress, and closes the file.
  func close() async {
    await withResumption { continuation in
      let isIdle = state.withLock { state in
        state.isClosed = true
        if state.pending == 0 { return true }
        state.closers.append(continuation)
        return false
      }
      if isIdle { continuation.resume() }
    }
    await withResumption { continuation in
      maintenance.async { [self] in
        let opening = state.withLock { state in
          defer { state.opening = nil }
          return state.opening
        }
        try? opening?.close()
        continuation.resume()
      }
    }
  }
}

extension DatabaseFile {
  /// One opening of the file. Data read through it does not apply to a later opening.
  final class Opening: Sendable {
    let pool: DatabasePool
    let identity: FileIdentity?
    let secret: [UInt8]
    /// The group that each reading connection enters until it is closed.
    private let readers = DispatchGroup()

    init(_ path: String, _ configuration: SQLiteCache.Configuration) throws {
      // A process that is creating the database can change it during a read, so a second read has to agree.
      if let refusal = Self.refusal(path), Self.refusal(path) != nil { throw refusal }
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

    /// Returns the error for a database of a later version or of another program, or `nil`.
    ///
    /// The pool switches a database to the write-ahead log, which changes it. This reads only the database itself
    /// (`immutable`), without locks and without files beside it. It finds no version that is only in the log, or where SQLite
    /// takes no URI for a path. ``Schema/prepare(_:path:)`` finds those.
    private static func refusal(_ path: String) -> CacheError? {
      var settings = GRDB.Configuration()
      settings.readonly = true
      settings.foreignKeysEnabled = false
      let location = URL(filePath: path).absoluteString + "?immutable=1"
      guard let database = try? DatabaseQueue(path: location, configuration: settings) else { return nil }
      defer { try? database.close() }
      do {
        _ = try database.read { try Schema.isNew($0, path: path) }
        return nil
      } catch {
        return error as? CacheError
      }
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
        // This affects only a new database, but would write to an existing one.
        guard try Int.fetchOne(database, sql: "PRAGMA page_count") == 0 else { return }
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

/// The identity of the file at a path.
struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let number: UInt64

  /// Reads the identity, or returns `nil` if the file does not exist or cannot be examined.
  init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    device = UInt64(truncatingIfNeeded: status.st_dev)
    number = UInt64(truncatingIfNeeded: status.st_ino)
  }

  /// The paths of a database, of its log and of the log's index.
  static func files(_ path: String) -> [String] { [path, path + "-wal", path + "-shm"] }

  /// Creates an empty database for this user alone. SQLite would let all users read it, and gives its mode to the other files.
  ///
  /// The file is linked into place, because closing a descriptor of a database that is in use would release SQLite's locks.
  static func createEmpty(_ path: String) {
    let draft = "\(path)-\(Revision.random())"
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    close(descriptor)
    _ = link(draft, path)
    _ = unlink(draft)
  }

  static func remove(_ path: String) { _ = unlink(path) }
}

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
