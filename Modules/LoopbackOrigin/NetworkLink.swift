#if Origin
/// The simulated link between an origin and its clients, shared by all connections.
public struct NetworkLink: Sendable, Hashable {
  /// The rate from the origin to the clients in bits per second, shared by all connections. It is unlimited if `nil` or not
  /// positive.
  public var bitsPerSecond: Int?
  /// The one-way latency in each direction. A round trip takes twice as long. A new connection needs an additional round trip.
  public var latency: Duration

  var isOffline = false

  /// Creates a link that is up.
  public init(bitsPerSecond: Int? = nil, latency: Duration = .zero) {
    (self.bitsPerSecond, self.latency) = (bitsPerSecond, latency)
  }

  /// A link that is down. Open connections are reset at once, new ones when they are accepted.
  public static var offline: Self {
    var link = Self()
    link.isOffline = true
    return link
  }
}
#endif
