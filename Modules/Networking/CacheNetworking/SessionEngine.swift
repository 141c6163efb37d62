internal import CacheCore
internal import Foundation

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
