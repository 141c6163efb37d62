internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// The transfers of one downloader that run, and those of them that may be joined.
final class TransferTable: Sendable {
  /// Requests with equal keys get the same answer, so they may share it. Every field counts: which ones the answer varies by is unknown before it comes.
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

  private struct State {
    var engine: SessionEngine
    var isClosed = false
  }

  private struct Tables {
    var running: [ObjectIdentifier: SessionDataTask] = [:]
    var joinable: [Key: SessionDataTask] = [:]
  }

  /// Held while a transfer is made, which takes a session some time: who leaves does not wait for that.
  private let state: Lock<State>
  /// Inside of the other, where both are held.
  private let tables = Lock(Tables())

  init(_ engine: SessionEngine) { state = Lock(State(engine: engine)) }

  /// The session that new transfers get, and its settings.
  var engine: SessionEngine { state.withLock { $0.engine } }

  /// Puts another engine in the place of the present one, unless the table is closed.
  func replace(by make: (SessionEngine) -> SessionEngine) {
    let old: SessionEngine? = state.withLock { state in
      guard !state.isClosed else { return nil }
      defer { state.engine = make(state.engine) }
      return state.engine
    }
    // Its session may end with it.
    withExtendedLifetime(old) {}
  }

  /// A share of a transfer: of a running one with this key, else of the one that `make` makes and starts.
  ///
  /// `make` runs under the lock, because a session that is invalidated meanwhile traps on Linux when it is asked for a task; it starts the task too, so that a
  /// session that ends right after waits for it. It must call no user's code, which could come back here.
  func enter(_ key: Key?, make: () -> SessionDataTask) throws(CacheError) -> Share {
    try state.withLock { state throws(CacheError) in
      guard !state.isClosed else { throw CacheError(.closed, reason: "the downloader has been closed") }
      if let key, let running = tables.withLock({ $0.joinable[key] }), let token = running.join() {
        return Share(transfer: running, token: token)
      }
      let task = make()
      guard let token = task.join() else { throw CacheError(.other, reason: "a new transfer could not be joined") }
      tables.withLock { tables in
        tables.running[ObjectIdentifier(task)] = task
        if let key { tables.joinable[key] = task }
      }
      task.resume()
      return Share(transfer: task, token: token)
    }
  }

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
  func close() -> SessionEngine? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      state.isClosed = true
      return state.engine
    }
  }
}
