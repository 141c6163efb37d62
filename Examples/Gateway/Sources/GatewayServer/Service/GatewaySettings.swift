public import HTTPServing
import HTTPTypes
public import NIOCore

/// The settings of the gateway.
public struct GatewaySettings: Sendable {
  public var origin: OriginAddress
  public var listen: HostAndPort
  /// The address of the status page, or `nil` for none.
  public var status: HostAndPort?
  public var keepsHost = true
  public var via: String?
  public var forwards = false
  /// The settings of the cache, or `nil` to pass everything through.
  public var cache: CacheSettings?
  public var purgers = PurgePermission.loopback
  /// The file of the access log, `-` for standard output, or `nil` for none.
  public var accessLog: String?
  public var threads = 1
  public var maximumConnections = 1000
  public var originConnections = 256
  public var clientTimeout = TimeAmount.seconds(60)
  public var halfClosedTime = TimeAmount.seconds(1)
  public var shutdownIdleTime = TimeAmount.seconds(2)
  public var originTimeout = Duration.seconds(60)
  public var connectTimeout = Duration.seconds(10)

  /// The limit of connections to the status page.
  static let statusConnections = 100

  public init(origin: OriginAddress, listen: HostAndPort) {
    self.origin = origin
    self.listen = listen
  }

  /// Lowers the limit of client connections to what a limit of open descriptors allows, beside the connections to the origin, the
  /// status page and the files of the cache.
  public mutating func limitConnections(descriptors: Int) {
    let reserved = originConnections + 100 + (status == nil ? 0 : Self.statusConnections)
    maximumConnections = DescriptorLimit.connections(
      within: descriptors, wanted: maximumConnections, reserved: reserved, each: cache?.folder == nil ? 1 : 2)
  }

  /// Whether a text can be the gateway's name in `Via` (RFC 9110 §7.6.3).
  public static func isViaName(_ text: String) -> Bool {
    HTTPField.Name(text.filter { $0 != ":" }) != nil
  }
}
