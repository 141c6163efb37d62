internal import CacheCore
internal import Foundation

/// The proxy for each request, and whether the platform can use it. The decision needs no I/O.
///
/// Linux ignores `URLSessionConfiguration.connectionProxyDictionary`, and libcurl reads the environment. A request is refused if
/// the caller's settings differ from the environment, because it would be sent another way.
struct ProxyRouting: Sendable {
  /// The settings that the caller wants, or `nil` for the platform's default.
  private let wanted: Result<ProxySettings, CacheError>?
  /// The platform's own settings, or `nil` if they are unknown.
  private let platform: ProxySettings?
  private let hasOnlyEnvironment: Bool

  /// - Parameters:
  ///   - source: The source that the caller chose.
  ///   - environment: The names and values of the environment.
  ///   - hasOnlyEnvironment: Whether the platform reads its proxies only from the environment.
  init(_ source: SessionDownloader.Configuration.ProxySource, environment: [String: String], hasOnlyEnvironment: Bool) {
    self.hasOnlyEnvironment = hasOnlyEnvironment
    // An invalid value is ignored, because libcurl reports it.
    var platform = hasOnlyEnvironment ? try? ProxySettings(environment: environment, readsCapitalHTTP: false) : nil
    // libcurl compares the patterns of `no_proxy` with a host's ASCII form and does not convert them.
    platform?.exceptions.removeAll { !$0.utf8.allSatisfy { $0 < 0x80 } }
    self.platform = platform
    switch source {
    case .platform: wanted = nil
    case .none: wanted = .success(ProxySettings())
    case .settings(let settings): wanted = .success(settings)
    case .environment:
      do throws(CacheError) {
        wanted = .success(try ProxySettings(environment: environment))
      } catch {
        wanted = .failure(error)
      }
    }
  }

  /// Creates the routing for this platform and the environment of the process.
  init(_ source: SessionDownloader.Configuration.ProxySource) {
    #if canImport(FoundationNetworking)
    self.init(source, environment: ProcessInfo.processInfo.environment, hasOnlyEnvironment: true)
    #else
    self.init(source, environment: ProcessInfo.processInfo.environment, hasOnlyEnvironment: false)
    #endif
  }

  /// The settings for a platform that accepts them, or `nil` for none.
  var settings: ProxySettings? { try? wanted?.get() }

  /// Returns the proxy for a URL, or `nil` if there is none or the platform does not reveal it.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if the platform would use another route than the caller wants.
  func proxy(for url: URL) throws(CacheError) -> ProxySettings.Proxy? {
    guard let wanted else { return platform?.proxy(for: url) }
    let proxy = try wanted.get().proxy(for: url)
    guard hasOnlyEnvironment, proxy != platform?.proxy(for: url) else { return proxy }
    let wish = proxy.map { "through the proxy \($0)" } ?? "without a proxy"
    throw CacheError(
      .invalidConfiguration,
      reason:
        "cannot send \(wish): Foundation on Linux reads proxies only from http_proxy, https_proxy, all_proxy and no_proxy"
    )
  }
}
