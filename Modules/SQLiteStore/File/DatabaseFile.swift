#if SQLite
internal import CacheCore
internal import Dispatch
internal import GRDB

/// The open database, whose calls run on its connections' threads. A damaged or deleted database is recreated.
final class DatabaseFile: Sendable {
  private struct State {
    var opening: Opening?
    var isClosed = false
    var pending = 0
    var closers: [CheckedContinuation<Void, Never>] = []
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
      let attempt = await withCheckedContinuation { continuation in
        start(opening) { [self] attempt in
          handOver()
          continuation.resume(returning: attempt)
        }
      }
      handOver()
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

  /// Takes the lock on both sides of a continuation. The thread sanitizer does not see the order that a continuation establishes
  /// and would report a race.
  private func handOver() {
    #if TSAN
    state.withLock { _ in }
    #endif
  }

  private func reopen(_ open: @escaping @Sendable () throws -> Opening) async throws(CacheError) -> Opening {
    let result: Result<Opening, any Error> = await withCheckedContinuation { continuation in
      maintenance.async { [self] in
        let result = Result { () throws -> Opening in
          let opening = try open()
          state.withLock { $0.opening = opening }
          return opening
        }
        continuation.resume(returning: result)
      }
    }
    handOver()
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
      guard state.pending == 0 else { return [CheckedContinuation<Void, Never>]() }
      defer { state.closers = [] }
      return state.closers
    }
    for closer in closers { closer.resume() }
  }

  /// Refuses new calls, waits for those in progress, and closes the file.
  func close() async {
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        state.isClosed = true
        if state.pending == 0 { return true }
        state.closers.append(continuation)
        return false
      }
      if isIdle { continuation.resume() }
    }
    await withCheckedContinuation { continuation in
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
#endif
