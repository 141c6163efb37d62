import AsyncHTTPNetworking
public import CacheCore
public import CacheManager
import ETagValidation
import HTTPServing
import HTTPTypes
import Logging
public import NIOCore
public import ServiceLifecycle

/// The gateway as a service: the port for clients, the optional port of the status page, and the HTTP client.
///
/// On graceful shutdown it accepts no new connection, completes the running requests, and then closes the HTTP client.
public struct GatewayService: Service {
  /// The addresses of the open ports.
  public struct Ports: Sendable {
    public var listen: Int
    public var status: Int?
  }

  private let settings: GatewaySettings
  private let group: any EventLoopGroup
  /// Called when all ports are open.
  public var onRunning: @Sendable (Ports) async -> Void = { _ in }
  public var clock: any CacheClock = SystemClock()
  /// Returns a responder that handles some requests and forwards the others to the gateway's responder. Its arguments are the
  /// gateway's responder, and the cache if there is one.
  public var fronting: @Sendable (_ next: any Responder, _ cache: ResourceManager?) -> any Responder = { next, _ in next }

  /// - Parameters:
  ///   - settings: The settings.
  ///   - group: The event loops. The caller shuts them down.
  public init(settings: GatewaySettings, group: any EventLoopGroup) { (self.settings, self.group) = (settings, group) }

  public func run() async throws {
    let log = try settings.accessLog.map { path throws(CacheError) in try AccessLog(path: path, clock: clock) }
    defer { log?.drain() }
    let traffic = Traffic(log: log)
    let engine = try AsyncHTTPDownloader(configuration: engineConfiguration)
    let connector = OriginConnector(
      origin: settings.origin, engine: engine, keepsHost: settings.keepsHost, via: settings.via)
    let cache = try settings.cache?.open(connector, clock: clock)
    let responder = fronting(router(connector, cache), cache?.manager)
    let opening = PortsOpening(hasStatus: settings.status != nil, onRunning)
    var services: [any Service] = [engine]
    if let status = settings.status {
      services.append(
        server(
          StatusPage(document: document(traffic, cache), clock: clock), Traffic(), at: status,
          maximumConnections: min(GatewaySettings.statusConnections, settings.maximumConnections)
        ) { await opening.opened(status: $0) })
    }
    services.append(
      server(responder, traffic, at: settings.listen, maximumConnections: settings.maximumConnections) {
        await opening.opened(listen: $0)
      })
    var configuration = ServiceGroupConfiguration(services: services, logger: Self.logger)
    configuration.maximumGracefulShutdownDuration = .seconds(30)
    try await ServiceGroup(configuration: configuration).run()
    await cache?.manager.close()
  }

  private func router(_ connector: OriginConnector, _ cache: OpenCache?) -> RequestRouter {
    guard let cache else {
      return RequestRouter(
        next: PassThrough(downloader: connector), purging: NothingToPurge(), purgers: settings.purgers,
        forwards: settings.forwards, clock: clock)
    }
    let caching = CachingResponder(manager: cache.manager, defaultAuthority: settings.origin.authority)
    return RequestRouter(
      next: caching, purging: caching, purgers: settings.purgers, forwards: settings.forwards, clock: clock)
  }

  private var engineConfiguration: AsyncHTTPDownloader.Configuration {
    .init {
      $0.connectionsPerHost = settings.originConnections
      $0.idleTimeout = settings.originTimeout
      $0.connectTimeout = settings.connectTimeout
      $0.eventLoopGroup = group
      // Like other reverse proxies, the gateway speaks HTTP/1.1 to its origin.
      $0.allowsHTTP2 = false
    }
  }

  private func server(
    _ responder: any Responder, _ traffic: Traffic, at place: HostAndPort, maximumConnections: Int,
    _ onRunning: @escaping @Sendable (Int) async -> Void
  ) -> any Service {
    HTTPListener(
      place, RecordingResponder(next: responder, traffic: traffic, clock: clock),
      settings: ConnectionSettings {
        $0.maximumConnections = maximumConnections
        $0.clientTimeout = settings.clientTimeout
        $0.halfClosedTime = settings.halfClosedTime
        $0.shutdownIdleTime = settings.shutdownIdleTime
      }, group: group, onRunning: { await onRunning($0.port) })
  }

  private func document(_ traffic: Traffic, _ cache: OpenCache?) -> @Sendable () async -> StatusDocument {
    let (settings, clock, begun) = (settings, clock, clock.uptime)
    return {
      StatusDocument(
        origin: settings.origin.description, mode: settings.cache?.mode.rawValue ?? "off",
        uptimeSeconds: (clock.uptime - begun).components.seconds, traffic: traffic.total, store: await cache?.contents)
    }
  }

  /// Discards its messages: the access log and the command report everything.
  private static let logger = Logger(label: "gateway") { _ in SwiftLogNoOpLogHandler() }
}

/// A collector of the open ports, which reports them when all of them are open.
private actor PortsOpening {
  private let hasStatus: Bool
  private let onRunning: @Sendable (GatewayService.Ports) async -> Void
  private var listen: Int?
  private var status: Int?

  init(hasStatus: Bool, _ onRunning: @escaping @Sendable (GatewayService.Ports) async -> Void) {
    (self.hasStatus, self.onRunning) = (hasStatus, onRunning)
  }

  func opened(listen: Int? = nil, status: Int? = nil) async {
    if let listen { self.listen = listen }
    if let status { self.status = status }
    guard let listen = self.listen, !hasStatus || self.status != nil else { return }
    await onRunning(GatewayService.Ports(listen: listen, status: self.status))
  }
}
