#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The proxies of HTTP requests. All engines use the same rules.
///
/// ```swift
/// let proxy = ProxySettings.Proxy(host: "127.0.0.1", port: 8080)
/// let settings = ProxySettings(http: proxy, https: proxy, exceptions: ["localhost", ".example.org"])
/// settings.proxy(for: url)  // nil for a direct connection
/// ```
public struct ProxySettings: Hashable, Sendable {
  /// The proxy for `http:` URLs.
  public var http: Proxy?
  /// The proxy for `https:` URLs. It opens a tunnel (CONNECT, RFC 9110 §9.3.6), so it sees only the host name and the port.
  public var https: Proxy?
  /// The hosts that are reached directly, in the notation of `no_proxy`.
  ///
  /// Each item is one of these, with or without a port (`example.org:8080`, `[::1]:80`):
  /// - A name, which includes its subdomains. `example.org` and `.example.org` mean the same.
  /// - An address.
  /// - A range of addresses, such as `10.0.0.0/8`.
  /// - `*` for all hosts.
  public var exceptions: [String]

  /// Creates settings. By default, all hosts are reached directly.
  public init(http: Proxy? = nil, https: Proxy? = nil, exceptions: [String] = []) {
    self.http = http
    self.https = https
    self.exceptions = exceptions
  }

  /// Returns the proxy for a URL, or `nil` for a direct connection. Schemes other than `http` and `https` have no proxy.
  public func proxy(for url: URL) -> Proxy? {
    guard let proxy = candidate(for: url) else { return nil }
    guard let host = url.host(percentEncoded: false), !host.isEmpty else { return nil }
    let port = url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80)
    return exceptions.contains { Self.exception($0, covers: HostName.comparable(host), port: port) } ? nil : proxy
  }

  private func candidate(for url: URL) -> Proxy? {
    switch url.scheme?.lowercased() {
    case "http": http
    case "https": https
    default: nil
    }
  }

  private static func exception(_ text: String, covers host: String, port: Int) -> Bool {
    var pattern = text.trimmingBlanks.lowercased()
    guard pattern != "*" else { return true }
    if let (name, number) = HostPort.split(pattern), let number {
      guard number == port else { return false }
      pattern = name
    }
    if let address = IPAddress(host.trimmingRootDot) { return range(pattern, contains: address) }
    if pattern.hasPrefix("*.") { pattern.removeFirst() }
    if pattern.hasPrefix(".") { pattern.removeFirst() }
    let name = HostName.comparable(pattern.trimmingRootDot)
    guard !name.isEmpty else { return false }
    let wanted = host.trimmingRootDot
    return wanted == name || wanted.hasSuffix(".\(name)")
  }

  private static func range(_ pattern: String, contains address: IPAddress) -> Bool {
    let parts = pattern.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let start = IPAddress(String(first)), start.isV6 == address.isV6 else { return false }
    guard parts.count == 2 else { return start == address }
    guard let length = Int(parts[1]), (0...start.bytes.count * 8).contains(length) else { return false }
    return address.hasPrefix(start.bytes, length: length)
  }
}

extension String {
  fileprivate var trimmingBlanks: String { String(Substring(Substring(self).utf8.trimmingBlanks())) }

  /// The text without the root dot: `example.org.` and `example.org` are the same name (RFC 1034 §3.1).
  fileprivate var trimmingRootDot: String { hasSuffix(".") ? String(dropLast()) : self }
}

extension ProxySettings {
  /// A proxy server.
  public struct Proxy: Hashable, Sendable {
    /// The protocol between client and proxy.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
      /// HTTP without encryption.
      case http
      /// HTTP over TLS.
      case https
      /// SOCKS 5 (RFC 1928). The proxy resolves host names.
      case socks5
    }

    /// The protocol between client and proxy.
    public var kind: Kind
    /// The name or the address of the proxy. An IPv6 address has no brackets.
    public var host: String
    /// The port, from 1 to 65,535. With another number, requests fail with ``CacheError/Code/invalidConfiguration``.
    public var port: Int
    /// The user name, if the proxy requires one.
    public var user: String?
    /// The password of the user.
    public var password: String?

    /// Creates a proxy.
    public init(kind: Kind = .http, host: String, port: Int, user: String? = nil, password: String? = nil) {
      self.kind = kind
      self.host = host
      self.port = port
      self.user = user
      self.password = password
    }

    /// Creates a proxy from the value of an environment variable: `http://user:password@host:port` or `host:port`.
    ///
    /// As in curl, the default scheme is `http`, and the default port is 443 for `https` and 1080 otherwise. Returns `nil` if the
    /// text is not a proxy.
    public init?(_ text: String) {
      var rest = Substring(Substring(text).utf8.trimmingBlanks())
      kind = .http
      if let end = rest.firstRange(of: "://") {
        switch rest[..<end.lowerBound].lowercased() {
        case "http": kind = .http
        case "https": kind = .https
        case "socks5", "socks5h": kind = .socks5
        default: return nil
        }
        rest = rest[end.upperBound...]
      }
      rest = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
      if let at = rest.lastIndex(of: "@") {
        let login = rest[..<at]
        let parts = login.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = HostName.percentDecoded(parts[0]) else { return nil }
        self.user = user
        if parts.count == 2 {
          guard let password = HostName.percentDecoded(parts[1]) else { return nil }
          self.password = password
        }
        rest = rest[rest.index(after: at)...]
      }
      guard let (host, port) = HostPort.split(String(rest)), !host.isEmpty else { return nil }
      guard host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else { return nil }
      self.host = host
      self.port = port ?? (kind == .https ? 443 : 1080)
    }
  }
}

extension ProxySettings.Proxy: CustomStringConvertible {
  /// The scheme, the host and the port, without the password.
  public var description: String { "\(kind.rawValue)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}

extension ProxySettings {
  /// Creates settings from environment variables: `http_proxy`, `https_proxy`, `all_proxy` as the default of both, and
  /// `no_proxy`.
  ///
  /// Lowercase names take precedence over uppercase ones. An empty value means no proxy, without a fallback to `all_proxy`.
  ///
  /// `HTTP_PROXY` in upper case is not read in a CGI program, which `REQUEST_METHOD` or `GATEWAY_INTERFACE` indicates. A CGI
  /// server sets it from the client's `Proxy` field, so any client could choose the proxy (CVE-2016-5385). curl never reads it.
  ///
  /// - Parameters:
  ///   - environment: The names and values of the environment, as in `ProcessInfo`.
  ///   - readsCapitalHTTP: Whether `HTTP_PROXY` is read at all. Pass `false` to match curl.
  /// - Throws: ``CacheError/Code/invalidConfiguration`` if a value is not a proxy. The error names the variable, but not the
  ///   value, which may contain a password.
  public init(environment: [String: String], readsCapitalHTTP: Bool = true) throws(CacheError) {
    let isCGI = environment["REQUEST_METHOD"] != nil || environment["GATEWAY_INTERFACE"] != nil
    let httpNames = readsCapitalHTTP && !isCGI ? ["http_proxy", "HTTP_PROXY"] : ["http_proxy"]
    let shared = try Self.proxy(["all_proxy", "ALL_PROXY"], in: environment) ?? .none
    http = try Self.proxy(httpNames, in: environment) ?? shared
    https = try Self.proxy(["https_proxy", "HTTPS_PROXY"], in: environment) ?? shared
    let list = environment["no_proxy"] ?? environment["NO_PROXY"] ?? ""
    exceptions = list.split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
  }

  /// Returns the outer `nil` if no variable is set, and the inner `nil` if the variable is empty.
  private static func proxy(_ names: [String], in environment: [String: String]) throws(CacheError) -> Proxy?? {
    guard let name = names.first(where: { environment[$0] != nil }), let value = environment[name] else { return nil }
    guard value.contains(where: { !$0.isWhitespace }) else { return .some(nil) }
    guard let proxy = Proxy(value) else {
      throw CacheError(.invalidConfiguration, reason: "the environment variable \(name) is not a valid proxy address")
    }
    return proxy
  }
}
