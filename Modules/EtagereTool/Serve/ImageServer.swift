#if Tool && Service
import AsyncHTTPNetworking
import CacheTelemetry
import Etagere
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdImages
import ImageService
import Logging
import Metrics
import NIOCore
import ServiceLifecycle
import UnixSignals

/// The server of `etagere serve`: the images, the state of the process, and the optional port of the metrics.
///
/// On SIGTERM and SIGINT it accepts no new connection, completes the running requests, and then closes the cache.
final class ImageServer: Sendable {
  private let settings: ServeSettings
  private let service: ImageService
  private let downloader: AsyncHTTPDownloader
  private let prometheus = PrometheusMetrics()
  private let disk: DiskCache?
  private let isDraining = Lock(false)
  private let log = LogWriter()
  private let readiness = Readiness()

  /// Opens the cache.
  ///
  /// - Throws: `CacheError` with the setting or the path that is not usable.
  init(_ settings: ServeSettings) throws(CacheError) {
    self.settings = settings
    guard !settings.hasDemo || !"\(settings.path)/".hasPrefix("\(DemoPage.path)/") else {
      throw CacheError(
        .invalidConfiguration, reason: "the path '\(settings.path)' is that of the demo: change 'path', or use 'demo' false")
    }
    var configuration = try settings.configuration()
    downloader = try AsyncHTTPDownloader(
      configuration: .init {
        $0.userAgent = "etagere/\(EtagereCommand.version)"
        // The address of the peer is checked too, so that a name cannot change its address between the check and the connection.
        if !settings.allowsPrivateAddresses { $0.addressPolicy = .publicOnly }
        $0.idleTimeout = settings.limits.timeout
      })
    configuration.cache.downloader = downloader.resuming().retrying(.brief).decoding()
    let memory = MemoryCache(limits: .init(cost: settings.memory))
    configuration.cache.memory = memory
    disk = try settings.cacheFolder.map { folder throws(CacheError) in
      try DiskCache(path: folder, configuration: .init(sizeLimit: Int64(settings.cacheSize)))
    }
    configuration.cache.store = disk
    try Self.share(&configuration.cache, settings.redis, disk)
    if settings.admin != nil {
      configuration.cache.observer = Telemetry([
        .metrics(factory: prometheus, evictions: ["memory": { memory.counters.evictions }])
      ])
    }
    service = try ImageService(configuration)
  }

  /// Runs the server until a signal ends it.
  ///
  /// - Parameter readKeys: Reads the signing keys again, for SIGHUP.
  func run(readingKeys readKeys: @escaping @Sendable () async throws -> [SigningKey]) async throws {
    let logger = Logger(label: "etagere") { _ in SwiftLogNoOpLogHandler() }
    var services: [any Service] = [downloader]
    services.append(KeyReload(service: service, readKeys: readKeys))
    if let admin = settings.admin {
      services.append(
        Application(
          router: adminRouter(), configuration: .init(address: .hostname(admin.host, port: admin.port)),
          onServerRunning: { Self.tell("metrics on http://\(admin.with($0))/metrics") }, logger: logger))
    }
    let listen = settings.listen
    services.append(
      Application(
        router: router(),
        server: HTTPServerBuilder { responder in
          EventLoopHTTP1(HTTP1Channel(responder: responder, configuration: .init(idleTimeout: .seconds(75))))
        },
        configuration: ApplicationConfiguration(
          address: .hostname(listen.host, port: listen.port),
          availableConnectionsDelegate: MaximumAvailableConnections(settings.maximumConnections)),
        onServerRunning: { [settings] channel in
          if settings.hasDemo {
            Self.tell(
              "http://\(listen.with(channel))\(DemoPage.path) signs a URL for every client that can reach it: not for production")
          }
          Self.tell("listening on \(listen.with(channel))")
        }, logger: logger))
    // The last service is the first one that is told of the shutdown, and the others wait for its end.
    services.append(Draining(time: settings.drainTime) { [self] in isDraining.withLock { $0 = true } })
    var configuration = ServiceGroupConfiguration(
      services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    configuration.maximumGracefulShutdownDuration = settings.drainTime + .seconds(30)
    try await ServiceGroup(configuration: configuration).run()
    await service.close(within: .seconds(5))
    await log.drain()
  }

  private func router() -> Router<ClientContext> {
    let router = Router(context: ClientContext.self)
    router.add(middleware: UpgradeMiddleware())
    if settings.hasAccessLog { router.add(middleware: AccessLog(field: settings.clientField, writer: log)) }
    if settings.admin != nil { router.add(middleware: RequestMetrics(factory: prometheus)) }
    router.get("healthz") { _, _ in "ok\n" }
    router.get("readyz") { [self] _, _ -> Response in
      if isDraining.withLock({ $0 }) { return .unready("shutting down") }
      // Without a Redis server, the service goes on with its own cache.
      return await readiness.isReady { [disk] in
        do throws(CacheError) {
          _ = try await disk?.usage()
          return true
        } catch {
          return false
        }
      }
        ? Response(status: .ok, body: ResponseBody(byteBuffer: ByteBuffer(string: "ready\n")))
        : .unready("the cache folder cannot be used")
    }
    if settings.hasDemo { router.addRoutes(DemoPage(service, settings).endpoints) }
    let field = settings.clientField
    router.addRoutes(
      ImageRoutes<ClientContext>(service) { request, context in
        context.client(request, field)
      } onError: { error, _, context in
        context.failure.note(error)
      }.endpoints)
    return router
  }

  /// Returns the routes for operators: the metrics and purges.
  private func adminRouter() -> Router<BasicRequestContext> {
    let router = Router()
    router.add(middleware: UpgradeMiddleware())
    router.get("metrics") { [prometheus, service] _, _ in
      Response(
        status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: prometheus.text(resultsInProgress: service.resultsInProgress))))
    }
    router.post("purge") { [service] request, _ in
      let parameters = request.uri.queryParameters
      let mode: PurgeMode = parameters["mode"] == "soft" ? .soft : .hard
      do throws(CacheError) {
        let count =
          switch (parameters["tag"], parameters["source"]) {
          case (let tag?, nil): try await service.manager.purge(.tag(String(tag)), mode, in: .all)
          case (nil, let source?): try await service.purge(source: String(source), mode)
          default: throw CacheError(.misuse, reason: "a purge needs either 'tag' or 'source'")
          }
        return "\(count)\n"
      } catch {
        throw HTTPError(
          error.code == .misuse || error.code == .invalidURL ? .badRequest : .serviceUnavailable, message: error.reason)
      }
    }
    return router
  }

  private static func tell(_ line: String) { Console.writeError("etagere: \(line)\n") }
}

extension Response {
  fileprivate static func unready(_ reason: String) -> Response {
    Response(status: .serviceUnavailable, body: ResponseBody(byteBuffer: ByteBuffer(string: "\(reason)\n")))
  }
}

extension HostAndPort {
  /// Returns the place with the port that the system has selected.
  fileprivate func with(_ channel: any Channel) -> HostAndPort {
    HostAndPort(host: host, port: channel.localAddress?.port ?? port)
  }
}

/// A request with the address of its client.
struct ClientContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  private let address: SocketAddress?
  let failure = NotedFailure()

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    address = source.channel.remoteAddress
  }

  /// The address that the last proxy states in `field`, or else that of the connection. Of an IPv6 address, it is the network of
  /// 64 bits, because a client has all addresses of its network.
  func client(_ request: Request, _ field: HTTPField.Name?) -> String? {
    if let field, let stated = request.headers[values: field].last, let client = Self.client(stated) { return client }
    return address.map(Self.text)
  }

  /// Returns the last address of a field, or `nil` if that is not an address.
  static func client(_ stated: String) -> String? {
    // Some proxies add the port: `192.0.2.1:5678`, `[2001:db8::1]:5678`.
    guard let text = stated.split(separator: ",").last?.filter({ $0 != " " }) else { return nil }
    let isIPv4WithPort = text.contains(".") && text.count(where: { $0 == ":" }) == 1
    let host =
      text.hasPrefix("[") ? text.dropFirst().prefix { $0 != "]" } : isIPv4WithPort ? text.prefix { $0 != ":" } : text[...]
    return (try? SocketAddress(ipAddress: String(host), port: 0)).map(Self.text)
  }

  private static func text(_ address: SocketAddress) -> String {
    guard case .v6(let address) = address else { return address.ipAddress ?? "unix" }
    return withUnsafeBytes(of: address.address.sin6_addr) { bytes in
      // An IPv4 client of a port for both protocols.
      if bytes.prefix(10).allSatisfy({ $0 == 0 }), bytes[10] == 255, bytes[11] == 255 {
        return bytes.suffix(4).map { "\($0)" }.joined(separator: ".")
      }
      let groups = stride(from: 0, to: 8, by: 2).map { String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16) }
      return groups.joined(separator: ":") + "::/64"
    }
  }
}

/// The state of the cache, which is checked at most once per second, because any client can ask for it.
private final class Readiness: Sendable {
  private let known = Lock<(isReady: Bool, until: ContinuousClock.Instant)?>(nil)

  func isReady(_ check: () async -> Bool) async -> Bool {
    if let known = known.withLock({ $0 }), ContinuousClock.now < known.until { return known.isReady }
    let isReady = await check()
    known.withLock { $0 = (isReady, .now + .seconds(1)) }
    return isReady
  }
}

/// A service that notes the start of the shutdown, and delays the rest of it. Meanwhile `/readyz` reports it, and balancers send
/// no more requests.
private struct Draining: Service {
  let time: Duration
  let began: @Sendable () -> Void

  func run() async throws {
    try await gracefulShutdown()
    began()
    try await Task.sleep(for: time)
  }
}

/// A service that reads the signing keys again on SIGHUP. Keys that cannot be read leave the current ones in place.
private struct KeyReload: Service {
  let service: ImageService
  let readKeys: @Sendable () async throws -> [SigningKey]

  func run() async throws {
    for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
      do {
        let keys = try await readKeys()
        try service.setKeys(keys)
        Console.writeError("etagere: \(Text.count(keys.count, "signing key", "signing keys")) read\n")
      } catch let error as SettingsError {
        Console.complain("the signing keys are unchanged: \(error.reason)")
      } catch {
        Console.complain("the signing keys are unchanged: \(error)")
      }
    }
  }
}
#endif
