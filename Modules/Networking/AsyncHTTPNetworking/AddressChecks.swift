#if AsyncHTTP
internal import CacheCore
internal import NIOCore
internal import NIOPosix

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Glibc)
internal import Glibc
#endif

/// The check of a host name's addresses before a connection is made.
struct NameCheck: Sendable {
  private let policy: AddressPolicy
  private let threads: NIOThreadPool

  /// - Parameters:
  ///   - policy: The policy for addresses.
  ///   - threads: The threads for name lookups.
  init(_ policy: AddressPolicy, on threads: NIOThreadPool = .singleton) { (self.policy, self.threads) = (policy, threads) }

  /// - Parameters:
  ///   - host: A name or an address.
  ///   - limit: The maximum time for the name lookup.
  ///   - eventLoop: The event loop for the timer.
  /// - Returns: The duration of the name lookup, or `nil` for an address.
  /// - Throws: `CacheError.Code.addressRefused` if the policy refuses one of the addresses, `.hostNotFound` if the name has none,
  ///   `.timedOut`, or `.cancelled`.
  func check(_ host: String, within limit: TimeAmount, on eventLoop: any EventLoop) async throws(CacheError) -> Duration? {
    if let address = IPAddress(host) {
      guard policy.allows(address) else { throw AddressPolicy.refusal(of: address, host: address.description) }
      return nil
    }
    let start = NIODeadline.now()
    let addresses = try await lookUp(host, within: limit, on: eventLoop)
    guard !addresses.isEmpty else {
      throw CacheError(.hostNotFound, reason: "the host name does not resolve")
    }
    // Every address is checked, because it is not known yet which one the connection will use.
    for address in addresses where !policy.allows(address) { throw AddressPolicy.refusal(of: address, host: host) }
    return Duration(NIODeadline.now() - start)
  }

  /// Looks up a name. `getaddrinfo` can block for seconds and cannot be cancelled, so it runs on a thread pool. A caller that
  /// times out or is cancelled does not wait for it.
  private func lookUp(
    _ host: String, within limit: TimeAmount, on eventLoop: any EventLoop
  ) async throws(CacheError) -> [IPAddress] {
    // The first result counts, because a promise ignores a second one.
    let promise = eventLoop.makePromise(of: Result<[IPAddress], CacheError>.self)
    let timer = eventLoop.scheduleTask(in: limit) {
      let reason = "the host name lookup took longer than \(Duration(limit).inSeconds)"
      promise.succeed(.failure(CacheError(.timedOut, reason: reason)))
    }
    defer { timer.cancel() }
    threads.runIfActive(eventLoop: eventLoop) { Self.addresses(of: host) }.whenComplete { found in
      promise.succeed(.success((try? found.get()) ?? []))
    }
    let result = try? await withTaskCancellationHandler {
      try await promise.futureResult.get()
    } onCancel: {
      promise.succeed(.failure(.cancelled))
    }
    return try (result ?? .success([])).get()
  }

  private static func addresses(of host: String) -> [IPAddress] {
    var hints = addrinfo()
    #if canImport(Glibc)
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    #else
    hints.ai_socktype = SOCK_STREAM
    #endif
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, nil, &hints, &list) == 0, let list else { return [] }
    defer { freeaddrinfo(list) }
    return sequence(first: list, next: { $0.pointee.ai_next }).compactMap { entry in
      entry.pointee.ai_addr.flatMap { IPAddress(socketAddress: $0, family: entry.pointee.ai_family) }
    }
  }
}

/// The check of a new connection's peer, before a request is sent. An earlier name lookup proves nothing (DNS rebinding).
struct PeerCheck: Sendable {
  private let policy: AddressPolicy

  init(_ policy: AddressPolicy) { self.policy = policy }

  /// Fails with the refusal and closes the connection if the policy refuses the peer's address.
  func check(_ channel: any Channel) -> EventLoopFuture<Void> {
    let peer = channel.remoteAddress?.ipAddress
    let address = peer.flatMap { IPAddress($0) }
    if let address, policy.allows(address) { return channel.eventLoop.makeSucceededVoidFuture() }
    // Deferred: the pool must receive the failure first, or it reports a lost connection instead.
    channel.eventLoop.execute { channel.close(promise: nil) }
    let refusal =
      if let address {
        AddressPolicy.refusal(of: address, host: address.description)
      } else {
        CacheError(.addressRefused, reason: "the address of the peer is unknown")
      }
    return channel.eventLoop.makeFailedFuture(refusal)
  }
}
#endif
