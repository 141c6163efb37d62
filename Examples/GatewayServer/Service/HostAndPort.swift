#if Gateway
/// The address of a port to open: `127.0.0.1:8080`, `[::1]:8080`, `localhost:0` for one that is free.
public struct HostAndPort: Hashable, Sendable, CustomStringConvertible {
  public var host: String
  public var port: Int

  public init(host: String, port: Int) { (self.host, self.port) = (host, port) }

  /// nil when `text` is none; without a host it means every address of this machine.
  public init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]), (0...65535).contains(port)
    else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() } else if host.contains(":") { return nil }
    self.host = host.isEmpty ? "::" : String(host)
    self.port = port
  }

  /// The same place with the port that was given.
  public func with(_ port: Int) -> Self { Self(host: host, port: port) }

  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
#endif
