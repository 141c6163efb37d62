#if canImport(Darwin)
internal import Darwin
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Glibc)
internal import Glibc
#endif

/// An Internet address: 4 bytes (RFC 791) or 16 (RFC 4291), in network order.
public struct IPAddress: Hashable, Sendable {
  /// 4 or 16 bytes, the most significant first.
  public let bytes: [UInt8]

  /// An address of its bytes; nil unless there are 4 or 16.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  /// An address of its usual notation: `192.0.2.1`, `2001:db8::1`, also in brackets and with a zone (`fe80::1%eth0`), which is
  /// dropped.
  ///
  /// Nil for anything else. Shorthand that resolvers take, such as `127.1` or `0x7f000001`, is a name here: let the resolver say
  /// what it means.
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

  /// The address inside one of the system's socket addresses; nil for a family that is not the Internet's.
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

  /// Whether it is one of version 6.
  public var isV6: Bool { bytes.count == 16 }

  /// The address of version 4 that is inside one of version 6: mapped or compatible (RFC 4291 §2.5.5), NAT64 (RFC 6052 §2.1) or
  /// 6to4 (RFC 3056 §2). Nil for every other.
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

  /// Whether the first `length` bits are those of `prefix`.
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
  /// The usual notation, that of version 6 shortened as RFC 5952 §4 has it.
  public var description: String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard inet_ntop(isV6 ? AF_INET6 : AF_INET, bytes, &text, socklen_t(text.count)) != nil else { return "" }
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
