internal import CacheCore
internal import Foundation

/// Which proxy a request goes through, and whether the platform can be made to use it. A decision without I/O.
///
/// On Linux `URLSessionConfiguration.connectionProxyDictionary` is ignored, and libcurl reads the environment: what the caller
/// wants can only be had when it is that, and anything else is refused rather than sent another way.
struct ProxyRouting: Sendable {
  /// What the caller wants; nil: whatever the platform does.
  private let wanted: Result<ProxySettings, CacheError>?
  /// What the platform does by itself, as far as that is known.
  private let platform: ProxySettings?
  private let hasOnlyEnvironment: Bool

  /// - Parameters:
  ///   - source: what the caller wants.
  ///   - environment: names and values.
  ///   - hasOnlyEnvironment: whether the platform heeds the environment, and nothing else.
  init(_ source: SessionDownloader.Configuration.ProxySource, environment: [String: String], hasOnlyEnvironment: Bool) {
    self.hasOnlyEnvironment = hasOnlyEnvironment
    // A value that is no proxy is libcurl's to complain about.
    var platform = hasOnlyEnvironment ? try? ProxySettings(environment: environment, readsCapitalHTTP: false) : nil
    // libcurl compares the patterns of `no_proxy` with a host's ASCII form, and does not convert them.
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

  /// What a platform that can be told is told; nil: nothing.
  var settings: ProxySettings? { try? wanted?.get() }

  /// The proxy that a request is known to go through; nil: none, or the platform's secret.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` when the platform would send it another way than the caller wants.
  func proxy(for url: URL) throws(CacheError) -> ProxySettings.Proxy? {
    guard let wanted else { return platform?.proxy(for: url) }
    let proxy = try wanted.get().proxy(for: url)
    guard hasOnlyEnvironment, proxy != platform?.proxy(for: url) else { return proxy }
    let wish = proxy.map { "through the proxy \($0)" } ?? "without a proxy"
    throw CacheError(
      .invalidConfiguration,
      reason:
        "this can't be sent \(wish): on Linux Foundation takes proxies from http_proxy, https_proxy, all_proxy and no_proxy alone"
    )
  }
}
