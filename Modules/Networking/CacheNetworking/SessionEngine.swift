internal import CacheCore
internal import Foundation
internal import HTTPTypes

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A session and the settings that it was created with. They are replaced together, so that no download mixes old and new
/// settings.
///
/// A download retains its engine until its transfer starts. The session of a replaced engine ends when the last such download
/// releases the engine. Foundation on Linux traps if an ended session is asked for a task.
final class SessionEngine: Sendable {
  let configuration: SessionDownloader.Configuration
  let delegate: SessionDelegate
  /// The session configuration that the caller gave, or `nil` for the platform's ephemeral one.
  let platform: URLSessionConfiguration?
  let session: URLSession
  let routing: ProxyRouting
  private let lifecycle = Lock(Lifecycle())

  private struct Lifecycle {
    /// The number of threads that are creating a task.
    var users = 0
    var isEnding = false
  }

  init(
    configuration: SessionDownloader.Configuration, platform: URLSessionConfiguration? = nil,
    challengeHandler: ReplaceableSetting<AuthenticationChallenge.Handler> = ReplaceableSetting(.init()),
    observer: (@Sendable (SessionDelegate.Event) -> Void)? = nil
  ) {
    self.configuration = configuration
    self.platform = platform
    // Read once and not for each request, because it costs more than the rest of a request.
    routing = ProxyRouting(configuration.proxy)
    delegate = SessionDelegate(
      challengeHandler, trustedHosts: configuration.trustedHosts, routing: routing, observer: observer)
    session = URLSession(
      configuration: configuration.session(basedOn: platform, proxies: routing.settings), delegate: delegate, delegateQueue: nil)
  }

  deinit { end() }

  /// Runs `work`, which may create tasks in the session. Returns `nil` if the session is ending. An end requested meanwhile waits
  /// for the work, because Foundation on Linux traps if an invalidated session is asked for a task.
  func whileOpen<Result>(_ work: () -> Result) -> Result? {
    let isOpen = lifecycle.withLock { lifecycle in
      guard !lifecycle.isEnding else { return false }
      lifecycle.users += 1
      return true
    }
    guard isOpen else { return nil }
    defer {
      let isLast = lifecycle.withLock { lifecycle in
        lifecycle.users -= 1
        return lifecycle.users == 0 && lifecycle.isEnding
      }
      if isLast { session.finishTasksAndInvalidate() }
    }
    return work()
  }

  /// Ends the session after its running tasks. A session is never released unless it is ended.
  ///
  /// To end it at once, cancel its transfers first. On Linux, `invalidateAndCancel()` reads the list of tasks while another
  /// thread changes it.
  func end() {
    let isNow = lifecycle.withLock { lifecycle in
      guard !lifecycle.isEnding else { return false }
      lifecycle.isEnding = true
      return lifecycle.users == 0
    }
    if isNow { session.finishTasksAndInvalidate() }
  }
}

/// The running transfers of one downloader, and the session that makes them.
final class TransferTable: Sendable {
  private enum Closing { case finishing, cancelling }

  private struct State {
    var engine: SessionEngine
    var closing: Closing?
  }

  private let state: Lock<State>
  private let running = Lock<[ObjectIdentifier: SessionDataTask]>([:])

  init(_ engine: SessionEngine) { state = Lock(State(engine: engine)) }

  /// The engine for new transfers.
  var engine: SessionEngine { state.withLock { $0.engine } }

  /// Replaces the engine, unless the table is closed.
  ///
  /// - Parameter make: The closure that creates an engine from the current one. It is called outside the lock, because it creates
  ///   a session. It is called again if another thread has replaced the engine meanwhile.
  func replace(by make: (SessionEngine) -> SessionEngine) {
    while true {
      let old = engine
      let new = make(old)
      let isDone = state.withLock { state in
        guard state.closing == nil else { return true }
        guard state.engine === old else { return false }
        state.engine = new
        return true
      }
      // Releasing an engine may end its session.
      withExtendedLifetime((old, new)) {}
      if isDone { return }
    }
  }

  /// Creates a transfer in the engine's session and starts it.
  ///
  /// - Parameter make: The closure that creates the transfer. It must not call user code, which could call this table and
  ///   deadlock.
  /// - Throws: `CacheError.Code.closed` if the table or the engine is closed.
  func start(in engine: SessionEngine, make: () -> SessionDataTask) throws(CacheError) -> SessionDataTask {
    guard state.withLock({ $0.closing == nil }) else { throw Self.closed }
    let started = engine.whileOpen {
      let task = make()
      running.withLock { $0[ObjectIdentifier(task)] = task }
      task.resume()
      // A task that closes the table cancels the transfers in it, and may have done so before this one was added.
      if state.withLock({ $0.closing == .cancelling }) { task.cancel() }
      return task
    }
    guard let started else { throw Self.closed }
    return started
  }

  private static var closed: CacheError { CacheError(.closed, reason: "the downloader has been closed") }

  /// Removes a transfer that has ended or was cancelled.
  func leave(_ task: SessionDataTask) {
    let removed = running.withLock { $0.removeValue(forKey: ObjectIdentifier(task)) }
    withExtendedLifetime(removed) {}
  }

  func all() -> [SessionDataTask] { running.withLock { Array($0.values) } }

  /// Closes the table for new transfers and returns the engine, or `nil` if the table was already closed.
  ///
  /// - Parameter finishing: Whether transfers that are being created may run. Otherwise they are cancelled.
  func close(finishing: Bool) -> SessionEngine? {
    state.withLock { state in
      guard state.closing == nil else { return nil }
      state.closing = finishing ? .finishing : .cancelling
      return state.engine
    }
  }
}
