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
