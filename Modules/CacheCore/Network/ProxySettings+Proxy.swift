extension ProxySettings {
  /// One proxy.
  public struct Proxy: Hashable, Sendable {
    /// How it is spoken to.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
      /// HTTP, in the clear.
      case http
      /// HTTP over TLS.
      case https
      /// SOCKS 5 (RFC 1928), names resolved by the proxy.
      case socks5
    }

    /// How it is spoken to.
    public var kind: Kind
    /// Its name or address; one of version 6 without brackets.
    public var host: String
    /// Its port, 1 to 65,535.
    public var port: Int
    /// Who asks, where it wants to know.
    public var user: String?
    /// With what password.
    public var password: String?

    /// A proxy of its parts.
    public init(kind: Kind = .http, host: String, port: Int, user: String? = nil, password: String? = nil) {
      self.kind = kind
      self.host = host
      self.port = port
      self.user = user
      self.password = password
    }

    /// A proxy as the environment has it: `http://user:password@host:port`, `host:port`. Without a scheme it is HTTP; without a
    /// port it is 1080, and 443 with `https`, as curl has it. Nil for what is none.
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
  /// Scheme, host and port: never the password.
  public var description: String { "\(kind.rawValue)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}
