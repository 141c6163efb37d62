internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// The transfers of one downloader that run, and those of them that may be joined.
final class TransferTable: Sendable {
  /// Requests with equal keys get the same answer, so they may share it. Every field counts: which ones the answer varies by is unknown before it comes.
  struct Key: Hashable, Sendable {
    var request: HTTPRequest
    var idleTimeout: Duration
    var networkAccess: NetworkAccess
  }

  /// A request's share of a transfer.
  struct Share {
    var transfer: SessionDataTask
    var token: SessionDataTask.CancelToken
  }

  private struct Joinable: Sendable {
    var transfer: SessionDataTask
    /// Who asks after a replacement wants the new settings' answer.
    var engine: Int
  }

  private struct State {
    var engine: SessionEngine
    var isClosed = false
    var running: [ObjectIdentifier: SessionDataTask] = [:]
    var joinable: [Key: Joinable] = [:]
  }

  private let state: Lock<State>

  init(_ engine: SessionEngine) { state = Lock(State(engine: engine)) }

  /// The session that new transfers get, and its settings.
  var engine: SessionEngine { state.withLock { $0.engine } }

  /// Puts another engine in the place of the present one, which is returned: its transfers go on. Nil when the table is closed.
  func replace(by make: (SessionEngine) -> SessionEngine) -> SessionEngine? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      let old = state.engine
      state.engine = make(old)
      return old
    }
  }

  /// A share of a transfer: of a running one with this key, else of the one that `make` makes and starts.
  ///
  /// `make` runs under the lock, because a session that is invalidated meanwhile traps on Linux when it is asked for a task; it starts the task too, so that a
  /// session which is replaced right after waits for it.
  func enter(_ key: Key?, make: (SessionEngine) -> SessionDataTask) throws(CacheError) -> Share {
    try state.withLock { state throws(CacheError) in
      guard !state.isClosed else { throw CacheError(.closed, reason: "the downloader has been closed") }
      if let key, let running = state.joinable[key], running.engine == state.engine.number,
        let token = running.transfer.join()
      {
        return Share(transfer: running.transfer, token: token)
      }
      let task = make(state.engine)
      guard let token = task.join() else { throw CacheError(.other, reason: "a new transfer could not be joined") }
      state.running[ObjectIdentifier(task)] = task
      if let key { state.joinable[key] = Joinable(transfer: task, engine: state.engine.number) }
      task.resume()
      return Share(transfer: task, token: token)
    }
  }

  /// The transfer is over, or given up: whoever asks now starts anew.
  func leave(_ task: SessionDataTask, _ key: Key?) {
    let removed: SessionDataTask? = state.withLock { state in
      if let key, state.joinable[key]?.transfer === task { state.joinable[key] = nil }
      return state.running.removeValue(forKey: ObjectIdentifier(task))
    }
    withExtendedLifetime(removed) {}
  }

  func all() -> [SessionDataTask] { state.withLock { Array($0.running.values) } }

  /// Closes the table for new transfers and returns the engine; nil when it was closed before.
  func close() -> SessionEngine? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      state.isClosed = true
      return state.engine
    }
  }
}
