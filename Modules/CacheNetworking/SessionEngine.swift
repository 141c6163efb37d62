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

  private enum Ending { case finishing, cancelling }

  private struct Lifecycle {
    /// The number of threads that are creating a task.
    var users = 0
    var ending: Ending?
  }

  init(
    configuration: SessionDownloader.Configuration, platform: URLSessionConfiguration? = nil,
    challengeHandler: AuthenticationChallenge.Handler? = nil, observer: (@Sendable (SessionDelegate.Event) -> Void)? = nil
  ) {
    self.configuration = configuration
    self.platform = platform
    delegate = SessionDelegate(
      challengeHandler: challengeHandler, trustedHosts: configuration.trustedHosts, observer: observer)
    // Read once and not for each request, because it costs more than the rest of a request.
    let environment = ProcessInfo.processInfo.environment
    #if canImport(FoundationNetworking)
    routing = ProxyRouting(configuration.proxy, environment: environment, hasOnlyEnvironment: true)
    #else
    routing = ProxyRouting(configuration.proxy, environment: environment, hasOnlyEnvironment: false)
    #endif
    session = URLSession(
      configuration: configuration.session(basedOn: platform, proxies: routing.settings), delegate: delegate, delegateQueue: nil)
  }

  deinit { end() }

  /// Runs `work`, which may create tasks in the session. Returns `nil` if the session is ending. An end requested meanwhile waits
  /// for the work, because Foundation on Linux traps if an invalidated session is asked for a task.
  func whileOpen<Result>(_ work: () -> Result) -> Result? {
    let isOpen = lifecycle.withLock { lifecycle in
      guard lifecycle.ending == nil else { return false }
      lifecycle.users += 1
      return true
    }
    guard isOpen else { return nil }
    defer {
      let ending: Ending? = lifecycle.withLock { lifecycle in
        lifecycle.users -= 1
        return lifecycle.users == 0 ? lifecycle.ending : nil
      }
      if let ending { invalidate(ending) }
    }
    return work()
  }

  /// Ends the session after its running tasks. A session is never released unless it is ended.
  func end() { end(.finishing) }

  /// Ends the session and cancels its running tasks.
  func cancel() { end(.cancelling) }

  private func end(_ ending: Ending) {
    let isNow = lifecycle.withLock { lifecycle in
      guard lifecycle.ending == nil else { return false }
      lifecycle.ending = ending
      return lifecycle.users == 0
    }
    if isNow { invalidate(ending) }
  }

  private func invalidate(_ ending: Ending) {
    switch ending {
    case .finishing: session.finishTasksAndInvalidate()
    // On the session's queue, for the reason given at `SessionDataTask.cancelPlatform`.
    case .cancelling: session.delegateQueue.addOperation { [session] in session.invalidateAndCancel() }
    }
  }
}
