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

/// Looks at what a host's name leads to, before anything is connected.
struct NameCheck: Sendable {
  private let policy: AddressPolicy
  private let threads: NIOThreadPool

  /// - Parameters:
  ///   - policy: which addresses may be loaded from.
  ///   - threads: where names are looked up.
  init(_ policy: AddressPolicy, on threads: NIOThreadPool = .singleton) { (self.policy, self.threads) = (policy, threads) }

  /// - Parameters:
  ///   - host: name or address.
  ///   - limit: how long looking the name up may take.
  ///   - eventLoop: where that time is measured.
  /// - Returns: how long looking the name up took; nil for an address, which needs none.
  /// - Throws: `CacheError.Code.addressRefused` when one of the addresses may not be loaded from, `.hostNotFound` when there is
  ///   none, `.timedOut`, `.cancelled`.
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
    // All of them: which one will be connected to is not known yet.
    for address in addresses where !policy.allows(address) { throw AddressPolicy.refusal(of: address, host: host) }
    return Duration(NIODeadline.now() - start)
  }

  /// `getaddrinfo` blocks for seconds when a name server is silent, and can't be stopped: that is for a thread that may be
  /// blocked, and whoever wants no more of it does not wait for it.
  private func lookUp(
    _ host: String, within limit: TimeAmount, on eventLoop: any EventLoop
  ) async throws(CacheError) -> [IPAddress] {
    // What comes first counts: a promise takes no second value.
    let promise = eventLoop.makePromise(of: Result<[IPAddress], CacheError>.self)
    let timer = eventLoop.scheduleTask(in: limit) {
      let reason = "looking the host name up took more than \(Duration(limit).inSeconds)"
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
#endif
