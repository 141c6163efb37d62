public import CacheCore
internal import HTTPTypes

/// A downloader that asks only hosts whose addresses are allowed: for servers that load what their users name.
///
/// ```swift
/// let downloader = engine.restrictingAddresses(to: .publicOnly)
/// ```
///
/// The host is resolved, and **all** of its addresses must be allowed: which of them the engine takes is not known here. Numbers
/// in odd forms (`127.1`, `0x7f000001`, `2130706433`) are judged by the address that they mean, and what programs read
/// differently is refused. A manager asks hop by hop, so the target of each redirect is judged too.
///
/// The engine resolves the name once more, and may be told something else (DNS rebinding), unless it looks at its peer's address
/// itself, as the one on SwiftNIO does. A proxy resolves names in its own way, and is not seen here.
public struct GuardedDownloader: Downloader {
  public let id: ComponentID
  /// Which addresses may be asked.
  public let policy: AddressPolicy
  private let base: any Downloader
  private let resolver: any HostResolver
  private let timeout: Duration
  private let clock: any CacheClock

  /// A downloader that asks only hosts whose addresses are allowed.
  ///
  /// - Parameters:
  ///   - base: who transfers.
  ///   - policy: which addresses may be asked.
  ///   - resolver: says at which addresses a host is.
  ///   - timeout: how long that may take.
  ///   - clock: measures it.
  public init(
    _ base: any Downloader, by policy: AddressPolicy, resolver: any HostResolver = SystemResolver(),
    timeout: Duration = .seconds(10), clock: any CacheClock = SystemClock()
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

  public var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  /// - Throws: `CacheError.Code.addressRefused` when one of the host's addresses is not allowed, `hostNotFound` or `timedOut`
  ///   when it can't be told, `invalidURL` when the host can be read in several ways, `unsupportedScheme` for anything but http
  ///   and https, else what the wrapped downloader throws.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    let began = clock.uptime
    try await judge(RequestTarget.of(request.head), within: min(timeout, request.timeout ?? timeout))
    return try await base.download(request.afterWaiting(clock.uptime - began))
  }

  private func judge(_ target: RequestTarget, within timeout: Duration) async throws(CacheError) {
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
    if let refused = addresses.first(where: { !policy.allows($0) }) {
      throw AddressPolicy.refusal(of: refused, host: host)
    }
  }
}

extension Downloader {
  /// This downloader, for hosts alone whose addresses are allowed.
  ///
  /// - Parameters:
  ///   - policy: which addresses may be asked.
  ///   - resolver: says at which addresses a host is.
  ///   - timeout: how long that may take.
  ///   - clock: measures it.
  public func restrictingAddresses(
    to policy: AddressPolicy, resolver: any HostResolver = SystemResolver(), timeout: Duration = .seconds(10),
    clock: any CacheClock = SystemClock()
  ) -> GuardedDownloader {
    GuardedDownloader(self, by: policy, resolver: resolver, timeout: timeout, clock: clock)
  }
}
