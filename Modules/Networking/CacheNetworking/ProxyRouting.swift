public import CacheCore
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

extension SessionDownloader.Configuration {
  /// The source of the proxies for requests.
  public enum ProxySource: Hashable, Sendable {
    /// The platform's proxies: the system settings on Apple platforms, libcurl's environment variables on Linux.
    case platform
    /// No proxy, regardless of the system settings and the environment.
    case none
    /// The proxies in the process environment, which `ProxySettings` reads when the session is created.
    case environment
    /// The given proxies.
    ///
    /// On Linux only the environment can set a proxy. With ``settings(_:)``, ``none`` or ``environment``, a request that libcurl
    /// would send by another route fails with `CacheError.Code.invalidConfiguration`.
    case settings(ProxySettings)
  }

  /// Converts the settings to a `connectionProxyDictionary`. The keys are the values of CFNetwork's constants, some of which are
  /// missing on some platforms. The password is not included: it is supplied when the proxy requests it.
  static func proxyDictionary(_ settings: ProxySettings) -> [AnyHashable: Any] {
    var dictionary: [AnyHashable: Any] = [:]
    for (prefix, proxy) in [("HTTP", settings.http), ("HTTPS", settings.https)] {
      guard let proxy else { continue }
      // One SOCKS proxy serves all schemes.
      let prefix = proxy.kind == .socks5 ? "SOCKS" : prefix
      dictionary["\(prefix)Enable"] = 1
      dictionary["\(prefix)Proxy"] = (try? HostName.ascii(proxy.host)) ?? proxy.host
      dictionary["\(prefix)Port"] = proxy.port
    }
    guard !dictionary.isEmpty, !settings.exceptions.isEmpty else { return dictionary }
    dictionary["ExceptionsList"] = settings.exceptions.flatMap(exceptionPatterns)
    return dictionary
  }

  /// Returns the patterns of one exception. A name in `no_proxy` also covers its subdomains, which need a second pattern.
  private static func exceptionPatterns(_ exception: String) -> [String] {
    let written =
      exception.hasPrefix("*.")
      ? String(exception.dropFirst(2)) : exception.hasPrefix(".") ? String(exception.dropFirst()) : exception
    let name = (try? HostName.ascii(written)) ?? written
    let isName = IPAddress(name) == nil && !name.contains("/") && !name.contains(":") && name != "*"
    return isName ? [name, "*.\(name)"] : [name]
  }
}
