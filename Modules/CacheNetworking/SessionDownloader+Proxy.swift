public import CacheCore
internal import Foundation

extension SessionDownloader.Configuration {
  /// Where the proxies come from that requests go through.
  public enum ProxySource: Hashable, Sendable {
    /// The platform: the system's settings on Apple's, and on Linux what libcurl reads in the environment.
    case platform
    /// None, whatever the system's settings or the environment say.
    case none
    /// The process's environment, as `ProxySettings` reads it when the session is made.
    case environment
    /// These.
    ///
    /// On Linux no proxy can be set but by the environment. A request that these settings would send another way than the
    /// environment does, ends with `CacheError.Code.invalidConfiguration`; ``none`` and ``environment`` likewise.
    case settings(ProxySettings)
  }

  /// The settings in the words of `connectionProxyDictionary`. The names are those of CFNetwork's constants, not all of which
  /// exist on every platform. A password is not among them: it is given when the proxy asks.
  static func proxyDictionary(_ settings: ProxySettings) -> [AnyHashable: Any] {
    var dictionary: [AnyHashable: Any] = [:]
    for (prefix, proxy) in [("HTTP", settings.http), ("HTTPS", settings.https)] {
      guard let proxy else { continue }
      // There is one SOCKS proxy for everything.
      let prefix = proxy.kind == .socks5 ? "SOCKS" : prefix
      dictionary["\(prefix)Enable"] = 1
      dictionary["\(prefix)Proxy"] = (try? HostName.ascii(proxy.host)) ?? proxy.host
      dictionary["\(prefix)Port"] = proxy.port
    }
    guard !dictionary.isEmpty, !settings.exceptions.isEmpty else { return dictionary }
    dictionary["ExceptionsList"] = settings.exceptions.flatMap(exceptionPatterns)
    return dictionary
  }

  /// A name stands for all below it in `no_proxy`; here that needs a second pattern.
  private static func exceptionPatterns(_ exception: String) -> [String] {
    let written =
      exception.hasPrefix("*.")
      ? String(exception.dropFirst(2)) : exception.hasPrefix(".") ? String(exception.dropFirst()) : exception
    let name = (try? HostName.ascii(written)) ?? written
    let isName = IPAddress(name) == nil && !name.contains("/") && !name.contains(":") && name != "*"
    return isName ? [name, "*.\(name)"] : [name]
  }
}
