internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// The transfers of one downloader that run, and those of them that may be joined.
final class TransferTable: Sendable {
  /// Requests with equal keys get the same answer, so they may share it. Every field counts: which ones the answer varies by is
  /// unknown before it comes.
  struct Key: Hashable, Sendable {
    /// The number of the engine: who asks after a replacement wants the new settings' answer.
    var engine: Int
    var request: HTTPRequest
    var idleTimeout: Duration
    var networkAccess: NetworkAccess

    init(engine: Int, plan: TransferPlan) {
      (self.engine, request, idleTimeout, networkAccess) = (engine, plan.head, plan.idleTimeout, plan.networkAccess)
    }
  }

  /// A request's share of a transfer.
  struct Share {
    var transfer: SessionDataTask
    var token: SessionDataTask.CancelToken
  }

  private enum Closing { case finishing, cancelling }

  private struct State {
    var engine: SessionEngine
    var closing: Closing?
  }

  private struct Tables {
    var running: [ObjectIdentifier: SessionDataTask] = [:]
    var joinable: [Key: SessionDataTask] = [:]
  }

  private let state: Lock<State>
  private let tables = Lock(Tables())
  /// Held while a transfer that may be joined is made, by its key: equal requests wait for each other, and others hardly ever do.
  private let shards = (0..<16).map { _ in Shard() }

  private final class Shard: Sendable {
    let lock = Lock(())
  }

  init(_ engine: SessionEngine) { state = Lock(State(engine: engine)) }

  /// The session that new transfers get, and its settings.
  var engine: SessionEngine { state.withLock { $0.engine } }

  /// Puts another engine in the place of the present one, unless the table is closed.
  func replace(by make: (SessionEngine) -> SessionEngine) {
    let old: SessionEngine? = state.withLock { state in
      guard state.closing == nil else { return nil }
      defer { state.engine = make(state.engine) }
      return state.engine
    }
    // Its session may end with it.
    withExtendedLifetime(old) {}
  }

  /// A share of a transfer: of a running one with this key, else of the one that `make` makes in the engine's session and starts.
  ///
  /// `make` must call no user's code, which could come back here and wait for itself.
  func enter(_ key: Key?, in engine: SessionEngine, make: () -> SessionDataTask) throws(CacheError) -> Share {
    guard state.withLock({ $0.closing == nil }) else { throw Self.closed }
    // Making takes a session some time, so nothing is locked meanwhile that others need.
    guard let key else { return try begin(nil, engine, make) }
    return try shards[abs(key.hashValue % shards.count)].lock.withLock { (_: inout Void) throws(CacheError) in
      if let running = tables.withLock({ $0.joinable[key] }), let token = running.join() {
        return Share(transfer: running, token: token)
      }
      return try begin(key, engine, make)
    }
  }

  private func begin(_ key: Key?, _ engine: SessionEngine, _ make: () -> SessionDataTask) throws(CacheError) -> Share {
    let begun: Result<Share, CacheError>? = engine.whileOpen {
      let task = make()
      guard let token = task.join() else { return .failure(CacheError(.other, reason: "a new transfer could not be joined")) }
      tables.withLock { tables in
        tables.running[ObjectIdentifier(task)] = task
        if let key { tables.joinable[key] = task }
      }
      task.resume()
      // Who closes the table cancels what is in it, and may have done so already.
      if state.withLock({ $0.closing == .cancelling }) { task.forceCancel() }
      return .success(Share(transfer: task, token: token))
    }
    guard let begun else { throw Self.closed }
    return try begun.get()
  }

  private static var closed: CacheError { CacheError(.closed, reason: "the downloader has been closed") }

  /// The transfer is over, or given up: whoever asks now starts anew.
  func leave(_ task: SessionDataTask, _ key: Key?) {
    let removed: SessionDataTask? = tables.withLock { tables in
      if let key, tables.joinable[key] === task { tables.joinable[key] = nil }
      return tables.running.removeValue(forKey: ObjectIdentifier(task))
    }
    withExtendedLifetime(removed) {}
  }

  func all() -> [SessionDataTask] { tables.withLock { Array($0.running.values) } }

  /// Closes the table for new transfers and returns the engine; nil when it was closed before.
  ///
  /// - Parameter finishing: whether what is being made meanwhile may run; else it is cancelled.
  func close(finishing: Bool) -> SessionEngine? {
    state.withLock { state in
      guard state.closing == nil else { return nil }
      state.closing = finishing ? .finishing : .cancelling
      return state.engine
    }
  }
}
