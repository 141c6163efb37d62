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
