#if Gateway
import NIOCore

/// What the gateway is told at its start.
struct GatewaySettings: Sendable {
  var origin: OriginAddress
  var listen: HostAndPort
  /// Where the status page is; nil: nowhere.
  var status: HostAndPort?
  var keepsHost = true
  var via: String?
  var forwards = false
  /// nil: everything is passed through.
  var cache: CacheSettings?
  var purgers = PurgePermission.loopback
  /// Where the access log goes; `-`: standard output, nil: nowhere.
  var accessLog: String?
  var threads = 1
  var maximumConnections = 1000
  var originConnections = 256
  var clientTimeout = TimeAmount.seconds(60)
  var halfClosedTime = TimeAmount.seconds(5)
  var lastCallTime = TimeAmount.milliseconds(500)
  var originTimeout = Duration.seconds(60)
  var connectTimeout = Duration.seconds(10)

  init(origin: OriginAddress, listen: HostAndPort) {
    self.origin = origin
    self.listen = listen
  }
}
#endif
