#if Tool && Service
import Foundation
import HTTPServing
import HTTPTypes
import NIOCore

/// The address of a client, as text. An IPv6 address is reduced to its /64 network, because one client can use all of it.
enum ClientAddress {
  /// Returns the last address in `field`, or the address of the connection.
  static func of(_ request: ServerRequest?, from peer: SocketAddress?, field: HTTPField.Name?) -> String? {
    if let field, let value = request?.head.headerFields[values: field].last, let client = stated(in: value) {
      return client
    }
    return peer.map(text)
  }

  /// Returns the last address of a field, or `nil` if that is not an address.
  static func stated(in value: String) -> String? {
    // Some proxies add the port: `192.0.2.1:5678`, `[2001:db8::1]:5678`.
    guard let text = value.split(separator: ",").last?.filter({ $0 != " " }) else { return nil }
    let isIPv4WithPort = text.contains(".") && text.count(where: { $0 == ":" }) == 1
    let host =
      text.hasPrefix("[") ? text.dropFirst().prefix { $0 != "]" } : isIPv4WithPort ? text.prefix { $0 != ":" } : text[...]
    return (try? SocketAddress(ipAddress: String(host), port: 0)).map(Self.text)
  }

  private static func text(_ address: SocketAddress) -> String {
    guard case .v6(let address) = address else { return address.ipAddress ?? "unix" }
    return withUnsafeBytes(of: address.address.sin6_addr) { bytes in
      // An IPv4 client of a port for both protocols.
      if bytes.prefix(10).allSatisfy({ $0 == 0 }), bytes[10] == 255, bytes[11] == 255 {
        return bytes.suffix(4).map { "\($0)" }.joined(separator: ".")
      }
      let groups = stride(from: 0, to: 8, by: 2).map { String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16) }
      return groups.joined(separator: ":") + "::/64"
    }
  }
}
#endif
