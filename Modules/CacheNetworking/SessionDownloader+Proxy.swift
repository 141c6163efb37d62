public import CacheCore
internal import Foundation

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
