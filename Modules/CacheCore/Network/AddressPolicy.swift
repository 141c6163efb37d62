/// Which addresses may be connected to: for servers that load what their users name, so that a URL can't make them ask their own
/// network.
///
/// A name says nothing about where it leads, so a policy looks at addresses, after the name has been resolved, and again at each
/// redirect. How strong the guarantee is depends on the engine: one that resolves the name a second time can be told two things
/// (DNS rebinding).
///
/// ```swift
/// let policy = AddressPolicy.publicOnly
/// IPAddress("169.254.169.254").map(policy.allows)  // false: what a cloud tells its machines
/// ```
public struct AddressPolicy: Hashable, Sendable {
  /// Kinds of addresses that are not of the public Internet, as a set. An address may be of several.
  public struct Kinds: OptionSet, Hashable, Sendable {
    /// One bit a kind.
    public let rawValue: UInt16

    /// A set of its bits.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// This machine: `127.0.0.0/8`, `::1` (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
    public static let loopback = Kinds(rawValue: 1)
    /// Networks of one's own: `10/8`, `172.16/12`, `192.168/16` (RFC 1918), `fc00::/7` (RFC 4193), `fec0::/10` (RFC 3879), a
    /// carrier's `100.64/10` (RFC 6598).
    public static let privateUse = Kinds(rawValue: 2)
    /// The link alone: `169.254/16` (RFC 3927), `fe80::/10` (RFC 4291 §2.5.6).
    public static let linkLocal = Kinds(rawValue: 4)
    /// Where clouds tell a machine its secrets: `169.254.169.254`, `169.254.170.2`, `fd00:ec2::254`, `100.100.100.200`,
    /// `168.63.129.16`.
    public static let metadata = Kinds(rawValue: 8)
    /// Several receivers: `224/4`, `ff00::/8`, and the broadcast address.
    public static let multicast = Kinds(rawValue: 16)
    /// No address of anybody: `0/8`, `::`, what is reserved, for documentation or for benchmarks (RFC 6890 and IANA's
    /// special-purpose registries).
    public static let reserved = Kinds(rawValue: 32)

    /// Everything that is not of the public Internet.
    public static let all: Kinds = [.loopback, .privateUse, .linkLocal, .metadata, .multicast, .reserved]
  }

  /// Kinds that may not be connected to.
  public var refused: Kinds
  /// Addresses that may be connected to though their kind is refused: a service of one's own.
  public var exceptions: Set<IPAddress>

  /// A policy of its parts.
  public init(refusing refused: Kinds, except exceptions: Set<IPAddress> = []) {
    self.refused = refused
    self.exceptions = exceptions
  }

  /// Only the public Internet.
  public static let publicOnly = AddressPolicy(refusing: .all)

  /// Whether `address` may be connected to. One of version 6 that carries one of version 4 is judged by both.
  public func allows(_ address: IPAddress) -> Bool {
    exceptions.contains(address) || refused.isDisjoint(with: Self.kinds(of: address))
  }

  /// What kinds an address is of; empty for one of the public Internet.
  public static func kinds(of address: IPAddress) -> Kinds {
    var kinds = Kinds()
    for range in address.isV6 ? rangesV6 : rangesV4 where address.hasPrefix(range.prefix, length: range.length) {
      kinds.formUnion(range.kinds)
    }
    if let embedded = address.embedded { kinds.formUnion(Self.kinds(of: embedded)) }
    return kinds
  }

  /// That `address` is refused, as the error a load ends with.
  public static func refusal(of address: IPAddress, host: String) -> CacheError {
    let subject = host == address.description ? host : "\(host) is at \(address), which"
    return CacheError(.addressRefused, reason: "\(subject) is no address that may be loaded from")
  }

  private struct Range {
    var prefix: [UInt8]
    var length: Int
    var kinds: Kinds

    init(_ prefix: [UInt8], _ length: Int, _ kinds: Kinds) { (self.prefix, self.length, self.kinds) = (prefix, length, kinds) }

    /// A range of version 6, by its first 16-bit groups.
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
    // Teredo and the other protocol assignments: what they lead to can't be told from outside.
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
