#if Gateway
public import NIOCore

/// What the gateway is told at its start.
public struct GatewaySettings: Sendable {
  public var origin: OriginAddress
  public var listen: HostAndPort
  /// Where the status page is; nil: nowhere.
  public var status: HostAndPort?
  public var keepsHost = true
  public var via: String?
  public var forwards = false
  /// nil: everything is passed through.
  public var cache: CacheSettings?
  public var purgers = PurgePermission.loopback
  /// Where the access log goes; `-`: standard output, nil: nowhere.
  public var accessLog: String?
  public var threads = 1
  public var maximumConnections = 1000
  public var originConnections = 256
  public var clientTimeout = TimeAmount.seconds(60)
  public var halfClosedTime = TimeAmount.seconds(5)
  public var lastCallTime = TimeAmount.milliseconds(500)
  public var originTimeout = Duration.seconds(60)
  public var connectTimeout = Duration.seconds(10)

  public init(origin: OriginAddress, listen: HostAndPort) {
    self.origin = origin
    self.listen = listen
  }

  /// Whether a text can be the gateway's name in `Via` (RFC 9110 §7.6.3).
  public static func isViaName(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0.isTokenByte || $0 == UInt8(ascii: ":") }
  }
}
#endif
