internal import CacheCore
internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A session with everything that it was made of: replaced as a whole, so that no download gets one part of the old and one of the new.
///
/// A download takes one at its start and keeps it until its transfer runs. So the session of one that was replaced ends once nobody prepares a download with it any
/// more: after that it takes no tasks, and Foundation on Linux traps when it is asked for one.
final class SessionEngine: Sendable {
  /// Counted up with each replacement.
  let number: Int
  let configuration: SessionDownloader.Configuration
  let delegate: SessionDelegate
  /// What the caller based the session on; nil: the platform's ephemeral configuration.
  let platform: URLSessionConfiguration?
  let session: URLSession
  let routing: ProxyRouting
  private let isEnded = Lock(false)

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

  /// Takes no more tasks; those that run come to their end. Without this the session would never go away.
  func end() {
    if endsNow() { session.finishTasksAndInvalidate() }
  }

  /// Takes no more tasks, and cancels those that run.
  func cancel() {
    guard endsNow() else { return }
    // Where transfers are cancelled too, and for the same reason.
    session.delegateQueue.addOperation { [session] in session.invalidateAndCancel() }
  }

  /// Whether its end has not begun yet; it has from now on.
  private func endsNow() -> Bool {
    isEnded.withLock { isEnded in
      defer { isEnded = true }
      return !isEnded
    }
  }
}
