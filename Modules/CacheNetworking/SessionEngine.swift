internal import CacheCore
internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A session with everything that it was made of: replaced as a whole, so that no transfer gets one part of the old and one of the new.
struct SessionEngine: Sendable {
  /// Counted up with each replacement.
  let number: Int
  let configuration: SessionDownloader.Configuration
  let delegate: SessionDelegate
  /// What the caller based the session on; nil: the platform's ephemeral configuration.
  let platform: URLSessionConfiguration?
  let session: URLSession
  let routing: ProxyRouting

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
}
