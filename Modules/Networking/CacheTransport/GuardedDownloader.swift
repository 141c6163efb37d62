public import CacheCore
internal import HTTPTypes

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The downloader that `restrictingAddresses(to:resolver:timeout:clock:)` returns.
package struct GuardedDownloader: Downloader {
  package let id: ComponentID
  private let policy: AddressPolicy
  private let base: any Downloader
  private let resolver: any HostResolver
  private let timeout: Duration
  private let clock: any CacheClock

  package init(
    _ base: any Downloader, by policy: AddressPolicy, resolver: any HostResolver, timeout: Duration, clock: any CacheClock
  ) {
    let exceptions = policy.exceptions.map(\.description).sorted().joined(separator: ",")
    id = ComponentID(
      Self.self, "\(policy.refused.rawValue) \(exceptions) \(timeout) \(resolver.id.type) \(resolver.id.parameters)",
      around: base.id)
    self.base = base
    self.policy = policy
    self.resolver = resolver
    self.timeout = timeout
    self.clock = clock
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    try CacheError.require("timeout", positive: timeout)
    let began = clock.uptime
    try await judge(GuardedHost.of(request.head), within: min(timeout, request.timeout ?? timeout))
    return try await base.download(request.afterWaiting(clock.uptime - began))
  }

  private func judge(_ target: GuardedHost, within timeout: Duration) async throws(CacheError) {
    let (host, addresses): (String, [IPAddress])
    switch target {
    case .address(let address): (host, addresses) = (address.description, [address])
    case .name(let name):
      let (resolver, error) = (resolver, CacheError(.timedOut, reason: "\(name) was not resolved within \(timeout)"))
      (host, addresses) = (
        name,
        try await Deadline(limit: timeout, clock: clock, error: error)
          .run { () async throws(CacheError) in try await resolver.addresses(of: name) }
      )
    }
    guard !addresses.isEmpty else { throw CacheError(.hostNotFound, reason: "\(host) has no address") }
    if let refused = addresses.first(where: { !policy.allows($0) }) { throw AddressPolicy.refusal(of: refused, host: host) }
  }
}

extension Downloader {
  /// Returns this downloader restricted to hosts with allowed addresses. It is meant for servers that load URLs from their users.
  ///
  /// The host is resolved, and all of its addresses must be allowed, because the engine may connect to any of them. Unusual
  /// notations (`127.1`, `0x7f000001`, `2130706433`) are checked as the address that they denote. A host that programs parse
  /// differently is refused. A manager sends each redirect as a separate request, so its target is checked too.
  ///
  /// The engine resolves the name again and may get another address (DNS rebinding), unless it also checks the address of its
  /// peer, as `AsyncHTTPDownloader` does. A proxy resolves names itself, which this downloader cannot see.
  ///
  /// ```swift
  /// let downloader = engine.restrictingAddresses(to: .publicOnly)
  /// ```
  ///
  /// A request fails with one of these codes:
  /// - `addressRefused` if one of the host's addresses is not allowed.
  /// - `hostNotFound` or `timedOut` if the name cannot be resolved.
  /// - `invalidURL` if the host is ambiguous.
  /// - `unsupportedScheme` for schemes other than `http` and `https`.
  ///
  /// - Parameters:
  ///   - policy: The policy for addresses.
  ///   - resolver: The name resolver, or `nil` for the system's (`getaddrinfo`).
  ///   - timeout: The maximum time to resolve a name, greater than zero. Otherwise requests fail with
  ///     `CacheError.Code.invalidConfiguration`.
  ///   - clock: The clock for the timeout.
  public func restrictingAddresses(
    to policy: AddressPolicy, resolver: (any HostResolver)? = nil, timeout: Duration = .seconds(10),
    clock: any CacheClock = SystemClock()
  ) -> some Downloader {
    GuardedDownloader(self, by: policy, resolver: resolver ?? SystemResolver(), timeout: timeout, clock: clock)
  }
}

/// The host of a request, parsed so that no engine can parse it differently. Ambiguous hosts are refused.
enum GuardedHost: Hashable {
  /// A host written as an address, in any notation.
  case address(IPAddress)
  /// A name to resolve, in lower case and without the root dot.
  case name(String)

  /// - Throws: `CacheError.Code.invalidURL` for a missing or ambiguous host, and `unsupportedScheme` for schemes other than
  ///   `http` and `https`.
  static func of(_ request: HTTPRequest) throws(CacheError) -> GuardedHost {
    guard let scheme = request.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
      throw CacheError(.unsupportedScheme, reason: "only the addresses of http and https URLs can be checked")
    }
    // Without the leading slash, the target would become part of the authority in a URL: "a.example" and "@127.0.0.1/".
    guard let path = request.path, path.hasPrefix("/") || path == "*" else {
      throw CacheError(.invalidURL, reason: "the request target does not begin with a slash")
    }
    return try host(of: request.authority ?? "")
  }

  /// The host of an authority (RFC 3986 §3.2), without its port.
  static func host(of authority: String) throws(CacheError) -> GuardedHost {
    // Deprecated (RFC 9110 §4.2.4) and used to deceive: "http://public.example@127.0.0.1/". A request created from a URL has the
    // user information in `Authorization`.
    guard !authority.contains("@") else { throw invalid("user information before the host is not allowed") }
    if authority.hasPrefix("[") { return try bracketed(authority) }
    let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2, let encoded = parts.first else { throw invalid("the host is not a name or a bracketed address") }
    if parts.count == 2 { try checkPort(parts[1]) }
    let written = decoded(encoded)
    // Checked before lowercasing, which turns the Kelvin sign into a "k".
    guard written.utf8.allSatisfy({ $0 < 0x80 }) else { throw invalid("the host is not ASCII: write it as xn--… (RFC 5891)") }
    var host = written.lowercased()
    if host.hasSuffix(".") { host.removeLast() }
    guard !host.isEmpty else { throw invalid("the URL has no host") }
    guard host.utf8.allSatisfy(isNameByte), !host.hasPrefix("."), !host.hasSuffix("."), !host.contains("..") else {
      throw invalid("invalid host name '\(host)': use letters, digits, hyphens and single dots")
    }
    if let address = IPAddress(host) { return .address(address) }
    guard endsInNumber(host) else { return .name(host) }
    guard let address = shorthand(host) else { throw invalid("invalid address '\(host)'") }
    return .address(address)
  }

  private static func bracketed(_ authority: String) throws(CacheError) -> GuardedHost {
    guard let end = authority.lastIndex(of: "]") else { throw invalid("the host's bracket is not closed") }
    let rest = authority[authority.index(after: end)...]
    if !rest.isEmpty {
      guard rest.hasPrefix(":") else { throw invalid("unexpected text after the host's bracket") }
      try checkPort(rest.dropFirst())
    }
    let inside = decoded(authority[authority.index(after: authority.startIndex)..<end])
    guard inside.contains(":"), let address = IPAddress("[\(inside)]") else {
      throw invalid("the host in brackets is not an address")
    }
    return .address(address)
  }

  private static func checkPort(_ text: Substring) throws(CacheError) {
    guard text.isEmpty || text.utf8.allSatisfy({ (48...57).contains($0) }) else { throw invalid("the port is not a number") }
  }

  /// Decodes percent encoding, which an engine may decode too. It decodes once: a doubly encoded host is not a name.
  ///
  /// The percent sign of a zone (RFC 6874) is `%25`. Older software leaves it bare, but never after a name.
  private static func decoded(_ text: Substring) -> String {
    guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
    return String(decoding: HostName.percentDecodedBytes(text).bytes, as: UTF8.self)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Whether a resolver would parse the host as a number (WHATWG URL, "ends in a number checker").
  private static func endsInNumber(_ host: String) -> Bool {
    guard let last = host.split(separator: ".").last else { return false }
    return last.utf8.allSatisfy { (48...57).contains($0) } || last.hasPrefix("0x") && number(last) != nil
  }

  /// Parses an address as `inet_aton` does: one to four decimal, octal or hexadecimal numbers, of which the last fills the rest.
  private static func shorthand(_ host: String) -> IPAddress? {
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    guard (1...4).contains(parts.count) else { return nil }
    var value: UInt64 = 0
    for (index, part) in parts.enumerated() {
      guard let number = number(part) else { return nil }
      let isLast = index == parts.count - 1
      let bytes = isLast ? 5 - parts.count : 1
      guard number < 1 << UInt64(8 * bytes) else { return nil }
      value = value << UInt64(8 * bytes) | number
    }
    return IPAddress(bytes: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) })
  }

  /// Parses a number in C notation. A leading zero means octal to some programs only, so a number that differs is refused.
  private static func number(_ text: Substring) -> UInt64? {
    if text.hasPrefix("0x") {
      let digits = text.dropFirst(2)
      return digits.isEmpty ? 0 : digits.first == "+" ? nil : UInt64(digits, radix: 16)
    }
    guard let first = text.first, first != "+", first != "-" else { return nil }
    guard first == "0", text.count > 1 else { return UInt64(text) }
    let octal = UInt64(text, radix: 8)
    return octal == UInt64(text) ? octal : nil
  }

  private static func invalid(_ reason: String) -> CacheError { CacheError(.invalidURL, reason: reason) }
}

/// The system's resolver (`getaddrinfo`), which uses the hosts file, DNS and the other configured sources.
///
/// The call blocks, so it runs on eight separate threads per process. A cancelled caller returns at once. The system call runs to
/// its end and occupies its thread until then.
package struct SystemResolver: HostResolver {
  package var id: ComponentID { ComponentID(Self.self) }

  package init() {}

  package func addresses(of host: String) async throws(CacheError) -> [IPAddress] {
    try await Self.pool.run { Self.lookUp(host) }.get()
  }

  private static let pool = BlockingThreadPool(count: 8, label: "etagere.names")

  private static func lookUp(_ host: String) -> Result<[IPAddress], CacheError> {
    guard !host.utf8.contains(0) else { return .failure(CacheError(.invalidURL, reason: "a host name cannot contain NUL")) }
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    // One socket type only: otherwise each address is listed once per type.
    #if canImport(Glibc)
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #else
    hints.ai_socktype = SOCK_STREAM
    #endif
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &found)
    defer { if let found { freeaddrinfo(found) } }
    guard code == 0 else {
      let reason = gai_strerror(code).map { String(cString: $0) } ?? "error \(code)"
      return .failure(CacheError(.hostNotFound, reason: "cannot resolve \(host): \(reason)"))
    }
    var addresses: [IPAddress] = []
    var next = found
    while let entry = next?.pointee {
      if let socket = entry.ai_addr, let address = IPAddress(socketAddress: socket, family: entry.ai_family),
        !addresses.contains(address)
      {
        addresses.append(address)
      }
      next = entry.ai_next
    }
    guard !addresses.isEmpty else { return .failure(CacheError(.hostNotFound, reason: "\(host) has no address")) }
    return .success(addresses)
  }
}

/// A resolver of host names.
public protocol HostResolver: Component {
  /// Returns all addresses of a host. Ends soon after the calling task is cancelled.
  ///
  /// - Parameter host: A name of letters, digits, dots and hyphens, in lower case and without the root dot. It is never an
  ///   address.
  /// - Returns: At least one address.
  /// - Throws: `CacheError.Code.hostNotFound` if the host has no address.
  func addresses(of host: String) async throws(CacheError) -> [IPAddress]
}
