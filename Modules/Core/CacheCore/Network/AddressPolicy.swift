#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A policy that decides which addresses a load may connect to. A server that loads URLs from its users needs it to protect its
/// own network.
///
/// A host name does not tell where it leads, so the policy checks addresses after the name is resolved, again for each redirect.
/// The strength of the guarantee depends on the engine: one that resolves the name a second time may get a different address (DNS
/// rebinding).
///
/// ```swift
/// let policy = AddressPolicy.publicOnly
/// IPAddress("169.254.169.254").map(policy.allows)  // false: the metadata service of a cloud
/// ```
public struct AddressPolicy: Hashable, Sendable {
  /// A set of kinds of addresses outside the public Internet. An address may have several kinds.
  public struct Kinds: OptionSet, Hashable, Sendable {
    /// The bits of the set, one for each kind.
    public let rawValue: UInt16

    /// Creates a set from its bits.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The local machine: `127.0.0.0/8`, `::1` (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
    public static let loopback = Kinds(rawValue: 1)
    /// Private networks: `10/8`, `172.16/12`, `192.168/16` (RFC 1918), `fc00::/7` (RFC 4193), `fec0::/10` (RFC 3879), and a
    /// carrier's `100.64/10` (RFC 6598).
    public static let privateUse = Kinds(rawValue: 2)
    /// The local link: `169.254/16` (RFC 3927), `fe80::/10` (RFC 4291 §2.5.6).
    public static let linkLocal = Kinds(rawValue: 4)
    /// The metadata services of cloud providers, which reveal secrets of a machine: `169.254.169.254`, `169.254.170.2`,
    /// `fd00:ec2::254`, `100.100.100.200`, `168.63.129.16`.
    public static let metadata = Kinds(rawValue: 8)
    /// Multicast and broadcast: `224/4`, `ff00::/8`, and `255.255.255.255`.
    public static let multicast = Kinds(rawValue: 16)
    /// Reserved addresses: `0/8`, `::`, and addresses for documentation or benchmarks (RFC 6890 and IANA's special-purpose
    /// registries).
    public static let reserved = Kinds(rawValue: 32)

    /// All kinds outside the public Internet.
    public static let all: Kinds = [.loopback, .privateUse, .linkLocal, .metadata, .multicast, .reserved]
  }

  /// The kinds that are refused.
  public var refused: Kinds
  /// Addresses that are allowed although their kind is refused, such as that of an internal service.
  public var exceptions: Set<IPAddress>

  /// Creates a policy.
  public init(refusing refused: Kinds, except exceptions: Set<IPAddress> = []) {
    self.refused = refused
    self.exceptions = exceptions
  }

  /// A policy that allows only the public Internet.
  public static let publicOnly = AddressPolicy(refusing: .all)

  /// Returns whether a load may connect to `address`. An IPv6 address that embeds an IPv4 address is judged by both.
  public func allows(_ address: IPAddress) -> Bool {
    exceptions.contains(address) || refused.isDisjoint(with: Self.kinds(of: address))
  }

  /// Returns the kinds of an address. The set is empty for an address of the public Internet.
  public static func kinds(of address: IPAddress) -> Kinds {
    var kinds = Kinds()
    for range in address.isV6 ? rangesV6 : rangesV4 where address.hasPrefix(range.prefix, length: range.length) {
      kinds.formUnion(range.kinds)
    }
    if let embedded = address.embedded { kinds.formUnion(Self.kinds(of: embedded)) }
    return kinds
  }

  /// Returns the error of a load whose host has the refused `address`.
  public static func refusal(of address: IPAddress, host: String) -> CacheError {
    let subject = host == address.description ? host : "\(host) at \(address)"
    return CacheError(.addressRefused, reason: "loads may not connect to \(subject)")
  }

  private struct Range {
    var prefix: [UInt8]
    var length: Int
    var kinds: Kinds

    init(_ prefix: [UInt8], _ length: Int, _ kinds: Kinds) { (self.prefix, self.length, self.kinds) = (prefix, length, kinds) }

    /// Creates an IPv6 range from its first 16-bit groups.
    init(groups: [UInt16], _ length: Int, _ kinds: Kinds) {
      prefix = (groups + Array(repeating: 0, count: 8 - groups.count)).flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
      (self.length, self.kinds) = (length, kinds)
    }
  }

  private static let rangesV4: [Range] = [
    Range([0], 8, .reserved),
    Range([10], 8, .privateUse),
    Range([100, 64], 10, .privateUse),
    Range([100, 100, 100, 200], 32, .metadata),
    Range([127], 8, .loopback),
    Range([168, 63, 129, 16], 32, .metadata),
    Range([169, 254], 16, .linkLocal),
    Range([169, 254, 169, 254], 32, .metadata),
    Range([169, 254, 170, 2], 32, .metadata),
    Range([172, 16], 12, .privateUse),
    Range([192, 0, 0], 24, .reserved),
    Range([192, 0, 2], 24, .reserved),
    Range([192, 88, 99], 24, .reserved),
    Range([192, 168], 16, .privateUse),
    Range([198, 18], 15, .reserved),
    Range([198, 51, 100], 24, .reserved),
    Range([203, 0, 113], 24, .reserved),
    Range([224], 4, .multicast),
    Range([240], 4, .reserved),
    Range([255, 255, 255, 255], 32, .multicast),
  ]

  private static let rangesV6: [Range] = [
    Range(groups: [], 128, .reserved),
    Range(groups: [0, 0, 0, 0, 0, 0, 0, 1], 128, .loopback),
    Range(groups: [0x64, 0xff9b, 1], 48, .privateUse),
    Range(groups: [0x100], 64, .reserved),
    // Teredo and other protocol assignments. Their targets are unknown to the client.
    Range(groups: [0x2001], 23, .reserved),
    Range(groups: [0x2001, 0xdb8], 32, .reserved),
    Range(groups: [0x3fff], 20, .reserved),
    Range(groups: [0x5f00], 16, .reserved),
    Range(groups: [0xfc00], 7, .privateUse),
    Range(groups: [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, .metadata),
    Range(groups: [0xfe80], 10, .linkLocal),
    Range(groups: [0xfec0], 10, .privateUse),
    Range(groups: [0xff00], 8, .multicast),
  ]
}

extension AddressPolicy.Kinds: CustomStringConvertible {
  /// The kinds' names in brackets.
  public var description: String {
    names([
      (.loopback, "loopback"), (.privateUse, "privateUse"), (.linkLocal, "linkLocal"), (.metadata, "metadata"),
      (.multicast, "multicast"), (.reserved, "reserved"),
    ])
  }
}

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
