#if Gateway
/// Where a port is opened: `127.0.0.1:8080`, `[::1]:8080`, `localhost:0` for one that is free.
struct HostAndPort: Hashable, Sendable, CustomStringConvertible {
  var host: String
  var port: Int

  init(host: String, port: Int) { (self.host, self.port) = (host, port) }

  /// nil when `text` is none; without a host it means every address of this machine.
  init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]), (0...65535).contains(port)
    else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() } else if host.contains(":") { return nil }
    self.host = host.isEmpty ? "::" : String(host)
    self.port = port
  }

  /// The same place with the port that was given.
  func with(_ port: Int) -> Self { Self(host: host, port: port) }

  var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
#endif
