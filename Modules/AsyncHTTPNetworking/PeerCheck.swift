#if AsyncHTTP
internal import CacheCore
internal import NIOCore

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
