public import CacheCore
internal import HTTPTypes

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
