internal import CacheCore
internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A session with everything that it was made of: replaced as a whole, so that no download gets one part of the old and one of
/// the new.
///
/// A download takes one at its start and keeps it until its transfer runs. So the session of one that was replaced ends once
/// nobody prepares a download with it any more: after that it takes no tasks, and Foundation on Linux traps when it is asked for
/// one.
final class SessionEngine: Sendable {
  /// Counted up with each replacement.
  let number: Int
  let configuration: SessionDownloader.Configuration
  let delegate: SessionDelegate
  /// What the caller based the session on; nil: the platform's ephemeral configuration.
  let platform: URLSessionConfiguration?
  let session: URLSession
  let routing: ProxyRouting
  private let lifecycle = Lock(Lifecycle())

  private enum Ending { case finishing, cancelling }

  private struct Lifecycle {
    /// Who makes a task right now.
    var users = 0
    var ending: Ending?
  }

  init(
    number: Int, configuration: SessionDownloader.Configuration, delegate: SessionDelegate, platform: URLSessionConfiguration?
  ) {
    self.number = number
    self.configuration = configuration
    self.delegate = delegate
    self.platform = platform
    // Read here and not at each request: it costs more than the rest of one.
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

  /// Runs `work`, which may ask the session for tasks; nil when its end has begun. An end that begins meanwhile comes after it:
  /// Foundation on Linux traps when a session that was invalidated is asked for a task.
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

  /// Takes no more tasks; those that run come to their end. Without this the session would never go away.
  func end() { end(.finishing) }

  /// Takes no more tasks, and cancels those that run.
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
    // Where transfers are cancelled too, and for the same reason.
    case .cancelling: session.delegateQueue.addOperation { [session] in session.invalidateAndCancel() }
    }
  }
}
