#if AsyncHTTP
internal import CacheCore
internal import NIOCore

/// Looks at whom a new connection leads to, before a request is sent over it: what a name led to a moment earlier proves nothing
/// (DNS rebinding).
struct PeerCheck: Sendable {
  private let policy: AddressPolicy

  init(_ policy: AddressPolicy) { self.policy = policy }

  /// Fails with the refusal, and closes the connection, when it leads where loads may not go.
  func check(_ channel: any Channel) -> EventLoopFuture<Void> {
    let peer = channel.remoteAddress?.ipAddress
    let address = peer.flatMap { IPAddress($0) }
    if let address, policy.allows(address) { return channel.eventLoop.makeSucceededVoidFuture() }
    // A moment later: the pool has to hear of the failure first, or it takes the closing for an accident.
    channel.eventLoop.execute { channel.close(promise: nil) }
    let refusal =
      if let address {
        AddressPolicy.refusal(of: address, host: address.description)
      } else {
        CacheError(.addressRefused, reason: "whom the connection leads to can't be told")
      }
    return channel.eventLoop.makeFailedFuture(refusal)
  }
}
#endif
