internal import CacheCore

/// The hosts whose TLS certificates are not verified. The comparison needs no platform, so it is tested everywhere.
struct TrustedHosts: Sendable {
  private let names: Set<String>

  /// - Parameter hosts: Names or addresses. One with a port is trusted at this port only.
  init(_ hosts: Set<String>) {
    names = Set(
      hosts.compactMap { text in
        guard let (host, port) = HostPort.split(text) else { return nil }
        let name = Self.comparable(host)
        return name.isEmpty ? nil : port.map { "\(name)|\($0)" } ?? name
      })
  }

  /// Returns whether the certificate of a server is not verified.
  func contains(host: String, port: Int) -> Bool {
    guard !names.isEmpty, let (host, _) = HostPort.split(host) else { return false }
    let name = Self.comparable(host)
    return names.contains(name) || names.contains("\(name)|\(port)")
  }

  /// Returns a name in lower case and in ASCII, without the dot of an absolute name, or the usual form of an address.
  private static func comparable(_ host: String) -> String {
    if let address = IPAddress(host) { return address.description }
    let name = HostName.comparable(host)
    return name.hasSuffix(".") ? String(name.dropLast()) : name
  }
}
