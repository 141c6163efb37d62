internal import CacheCore
internal import Foundation
internal import HTTPTypes

/// The transfers of one downloader that run, and those of them that may be joined.
final class TransferTable: Sendable {
  /// Requests with equal keys get the same answer, so they may share it. Every field counts: which ones the answer varies by is unknown before it comes.
  struct Key: Hashable, Sendable {
    var request: HTTPRequest
    var idleTimeout: Duration
  }

  private struct State {
    var isClosed = false
    var running: [ObjectIdentifier: SessionDataTask] = [:]
    var joinable: [Key: SessionDataTask] = [:]
  }

  private let state = Lock(State())

  /// A share of a transfer: of a running one with this key, else of the one that `make` makes.
  ///
  /// `make` runs under the lock, because a session that is invalidated meanwhile traps on Linux when it is asked for a task.
  func enter(_ key: Key?, make: () -> SessionDataTask) throws(CacheError) -> (SessionDataTask, SessionDataTask.CancelToken) {
    try state.withLock { state throws(CacheError) in
      guard !state.isClosed else { throw CacheError(.closed, reason: "the downloader has been closed") }
      if let key, let running = state.joinable[key], let token = running.join() { return (running, token) }
      let task = make()
      guard let token = task.join() else { throw CacheError(.other, reason: "a new transfer could not be joined") }
      state.running[ObjectIdentifier(task)] = task
      if let key { state.joinable[key] = task }
      return (task, token)
    }
  }

  /// The transfer is over, or given up: whoever asks now starts anew.
  func leave(_ task: SessionDataTask, _ key: Key?) {
    let removed: SessionDataTask? = state.withLock { state in
      if let key, state.joinable[key] === task { state.joinable[key] = nil }
      return state.running.removeValue(forKey: ObjectIdentifier(task))
    }
    withExtendedLifetime(removed) {}
  }

  func all() -> [SessionDataTask] { state.withLock { Array($0.running.values) } }

  /// Closes the table for new transfers; false when it was closed before.
  func close() -> Bool {
    state.withLock { state in
      defer { state.isClosed = true }
      return !state.isClosed
    }
  }
}
