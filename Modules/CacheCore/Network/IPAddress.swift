#if canImport(Darwin)
internal import Darwin
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Glibc)
internal import Glibc
#endif

/// An IP address of 4 bytes (RFC 791) or 16 bytes (RFC 4291), in network order.
public struct IPAddress: Hashable, Sendable {
  /// The 4 or 16 bytes, most significant first.
  public let bytes: [UInt8]

  /// Creates an address from 4 or 16 bytes. Returns `nil` for any other number of bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  /// Creates an address from its text form, such as `192.0.2.1` or `2001:db8::1`. Brackets are allowed, and a zone
  /// (`fe80::1%eth0`) is dropped.
  ///
  /// Returns `nil` for any other text. Shorthand that resolvers accept, such as `127.1` or `0x7f000001`, is treated as a name.
  public init?(_ text: String) {
    var text = Substring(text)
    if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
    if let zone = text.firstIndex(of: "%"), text.contains(":") { text = text[..<zone] }
    guard !text.contains("\0") else { return nil }
    let isV6 = text.contains(":")
    var bytes = [UInt8](repeating: 0, count: isV6 ? 16 : 4)
    guard inet_pton(isV6 ? AF_INET6 : AF_INET, String(text), &bytes) == 1 else { return nil }
    self.bytes = bytes
  }

  /// Creates an address from a socket address of the system. Returns `nil` for other address families.
  package init?(socketAddress: UnsafeRawPointer, family: Int32) {
    switch family {
    case AF_INET:
      var address = socketAddress.loadUnaligned(as: sockaddr_in.self).sin_addr
      bytes = withUnsafeBytes(of: &address) { Array($0) }
    case AF_INET6:
      var address = socketAddress.loadUnaligned(as: sockaddr_in6.self).sin6_addr
      bytes = withUnsafeBytes(of: &address) { Array($0) }
    default: return nil
    }
  }

  /// Whether the address is an IPv6 address.
  public var isV6: Bool { bytes.count == 16 }

  /// The IPv4 address that an IPv6 address embeds, or `nil` if it embeds none. It may be mapped or compatible (RFC 4291 §2.5.5),
  /// NAT64 (RFC 6052 §2.1) or 6to4 (RFC 3056 §2).
  public var embedded: IPAddress? {
    guard isV6 else { return nil }
    let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]
    let nat64: [UInt8] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]
    let head = Array(bytes[..<12])
    if head == mapped || head == nat64 { return IPAddress(bytes: Array(bytes[12...])) }
    if bytes[0] == 0x20, bytes[1] == 0x02 { return IPAddress(bytes: Array(bytes[2..<6])) }
    let isCompatible = head.allSatisfy { $0 == 0 } && bytes[12] != 0
    return isCompatible ? IPAddress(bytes: Array(bytes[12...])) : nil
  }

  /// Returns whether the first `length` bits equal those of `prefix`.
  func hasPrefix(_ prefix: [UInt8], length: Int) -> Bool {
    guard length <= bytes.count * 8, prefix.count * 8 >= length else { return false }
    let whole = length / 8
    guard bytes[..<whole].elementsEqual(prefix[..<whole]) else { return false }
    let rest = length % 8
    guard rest > 0 else { return true }
    return (bytes[whole] ^ prefix[whole]) >> (8 - rest) == 0
  }
}

extension IPAddress: CustomStringConvertible {
  /// The text form; for IPv6 as defined by RFC 5952 §4.
  public var description: String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard inet_ntop(isV6 ? AF_INET6 : AF_INET, bytes, &text, socklen_t(text.count)) != nil else { return "" }
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
