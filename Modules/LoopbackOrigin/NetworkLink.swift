#if Origin
/// The pipe between the origin and its clients: one for all connections.
public struct NetworkLink: Sendable, Hashable {
  /// Rate from the origin to the clients, in bits a second, shared by all connections. Unlimited when nil (or not positive).
  public var bitsPerSecond: Int?
  /// One way, in both directions: a round trip costs twice as much, and a new connection one round trip more.
  public var latency: Duration

  var isOffline = false

  /// A link that is up.
  public init(bitsPerSecond: Int? = nil, latency: Duration = .zero) {
    (self.bitsPerSecond, self.latency) = (bitsPerSecond, latency)
  }

  /// A link that is down: connections are reset, new ones as soon as they are accepted.
  public static var offline: Self {
    var link = Self()
    link.isOffline = true
    return link
  }
}
#endif
