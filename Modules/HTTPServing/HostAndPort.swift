#if Service
/// The address of a port to open, such as `127.0.0.1:8080` or `[::1]:8080`. Port 0 selects a free port.
public struct HostAndPort: Hashable, Sendable, CustomStringConvertible {
  public var host: String
  public var port: Int

  public init(host: String, port: Int) { (self.host, self.port) = (host, port) }

  /// Creates an address from a text, or returns `nil` if the text is invalid. Without a host, the address means all addresses of
  /// this machine.
  public init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]), (0...65535).contains(port)
    else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() } else if host.contains(":") { return nil }
    self.host = host.isEmpty ? "::" : String(host)
    self.port = port
  }

  /// Returns the same host with another port.
  public func with(_ port: Int) -> Self { Self(host: host, port: port) }

  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
#endif
