#if Tool && Service
import AsyncHTTPNetworking
import CacheTelemetry
import Etagere
import Foundation
import HTTPServing
import HTTPTypes
import ImageService
import Logging
import NIOCore
import ServiceLifecycle
import UnixSignals

#if Redis
import RedisStore
import StoreComposition
#endif

/// The server of `etagere-cli serve`: the images, the state of the process, and the optional port of the metrics.
///
/// On SIGTERM and SIGINT it accepts no new connection, completes the running requests, and then closes the cache.
final class ImageServer: Sendable {
  private let settings: ServeSettings
  private let service: ImageService
  private let downloader: AsyncHTTPDownloader
  private let prometheus = PrometheusMetrics()
  private let disk: DiskCache?
  private let shared: SharedTier?
  private let workers: CodecWorkers?
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
    shared = try SharedTier.add(to: &configuration.cache, settings.redis, disk)
    if settings.admin != nil {
      configuration.cache.observer = Telemetry([
        .metrics(factory: prometheus, evictions: ["memory": { memory.counters.evictions }])
      ])
    }
    if settings.workers > 0 {
      configuration.workers = try CodecWorkers(
        .init {
          ($0.count, $0.longJobs) = (settings.workers, settings.workers)
          ($0.memoryLimit, $0.priority) = (settings.workerMemory, settings.workerPriority)
        })
    }
    workers = configuration.workers
    configuration.onCodecFailure = { [log] error in log.write(AccessLog.line(codecFailure: error)) }
    service = try ImageService(configuration)
  }

  /// Runs the server until a signal ends it.
  ///
  /// - Parameter readKeys: Reads the signing keys again, for SIGHUP.
  func run(readingKeys readKeys: @escaping @Sendable () async throws -> [SigningKey]) async throws {
    if workers == nil, settings.limits.sourceFormats.contains(.svg) {
      Console.complain("without workers, one SVG can end or stop the service: allow it from trusted sources only")
    }
    if let workers {
      Console.complain("\(Text.count(settings.workers, "codec worker", "codec workers")): \(workers.confinement)")
    }
    let logger = Logger(label: "etagere") { _ in SwiftLogNoOpLogHandler() }
    var services: [any Service] = [downloader]
    services.append(KeyReload(service: service, readKeys: readKeys))
    let settings = settings
    if let admin = settings.admin {
      services.append(
        HTTPListener(
          admin, PortResponder(adminEndpoints),
          settings: ConnectionSettings {
            $0.maximumConnections = min(ServeSettings.adminConnections, settings.maximumConnections)
          }
        ) { Console.complain("metrics on http://\($0)/metrics") })
    }
    services.append(
      HTTPListener(
        settings.listen, responder,
        settings: ConnectionSettings {
          $0.maximumConnections = settings.maximumConnections
          $0.clientTimeout = .seconds(75)
        }
      ) { address in
        if settings.hasDemo {
          Console.complain(
            "http://\(address)\(DemoPage.path) signs a URL for every client that can reach it: not for production")
        }
        Console.complain("listening on \(address)")
      })
    // The last service is the first one that is told of the shutdown, and the others wait for its end.
    services.append(Draining(time: settings.drainTime) { [self] in isDraining.withLock { $0 = true } })
    var configuration = ServiceGroupConfiguration(
      services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    configuration.maximumGracefulShutdownDuration = settings.drainTime + .seconds(30)
    try await ServiceGroup(configuration: configuration).run()
    await service.close(within: .seconds(5))
    await log.drain()
    await shared?.close()
  }

  /// The responder of the port for clients.
  private var responder: PortResponder {
    var endpoints: [String: Endpoint] = [
      "/healthz": .get { _ in ServerResponse(.ok, "ok") },
      "/readyz": .get { [self] _ in
        let reason = await unreadiness
        return ServerResponse(reason == nil ? .ok : .serviceUnavailable, reason ?? "ready")
      },
    ]
    if settings.hasDemo { endpoints.merge(DemoPage(service, settings).endpoints) { $1 } }
    let (field, isLimited) = (settings.clientField, settings.limits.clientRate != nil)
    let images = Endpoint { [service] request in
      let client = isLimited ? ClientAddress.of(request, from: request.peer, field: field) : nil
      let response = await service.respond(to: request.head, client: client)
      var served = ServerResponse(head: response.head, body: response.body)
      served.error = response.error
      return served
    }
    var responder = PortResponder(endpoints, prefixEndpoint: ("\(service.pathPrefix)/", images))
    if settings.hasAccessLog { responder.log = AccessLog(field: field, writer: log) }
    if settings.admin != nil { responder.metrics = RequestMetrics(factory: prometheus) }
    return responder
  }

  /// The reason why the process accepts no work, or `nil` if it does. Without a Redis server, the service goes on with its own
  /// cache.
  private var unreadiness: String? {
    get async {
      if isDraining.withLock({ $0 }) { return "shutting down" }
      let isReady = await readiness.isReady { [disk] in
        do throws(CacheError) {
          _ = try await disk?.usage()
          return true
        } catch {
          return false
        }
      }
      return isReady ? nil : "the cache folder cannot be used"
    }
  }

  /// The endpoints for operators: the metrics and purges.
  private var adminEndpoints: [String: Endpoint] {
    [
      "/metrics": .get { [prometheus, service, shared, workers] _ in
        var gauges = ["etagere_results_in_progress": service.resultsInProgress]
        if service.manager.configuration.fleet != nil {
          gauges["etagere_fleet_current"] = service.manager.isCurrentInFleet ? 1 : 0
        }
        var counts = shared.map { ["etagere_redis_failures": $0.failures()] } ?? [:]
        if let workers { counts.merge(workers.counters.metrics) { $1 } }
        let text = prometheus.text(gauges: gauges, counts: counts)
        let head = HTTPResponse(status: .ok, headerFields: [.contentType: "text/plain; version=0.0.4; charset=utf-8"])
        return ServerResponse(head: head, body: ResourceBody(Data(text.utf8)))
      },
      "/purge": Endpoint([.post]) { [service, settings] request in
        // No page purges. A site could also give its own name the address of this port (DNS rebinding).
        let isTrusted =
          !request.head.headerFields.contains(.origin)
          || DemoPage.isTrusted(request.head.authority ?? "", listeningOn: settings.admin?.host ?? "")
        guard isTrusted, !request.isCrossSite else {
          return ServerResponse(.forbidden, "a purge is not allowed for pages of other sites")
        }
        // A purge looks at all results in memory, so it must not run on the event loop of its connection.
        return await withTaskExecutorPreference(globalConcurrentExecutor) {
          do throws(CacheError) {
            return ServerResponse(.ok, "\(try await Self.purge(service, query: request.head.path ?? ""))")
          } catch {
            let isClientError = error.code == .misuse || error.code == .invalidURL
            return ServerResponse(isClientError ? .badRequest : .serviceUnavailable, error.reason)
          }
        }
      },
    ]
  }

  /// Purges the tag or the source in the query of a target, and returns the number of responses.
  private static func purge(_ service: ImageService, query target: String) async throws(CacheError) -> Int {
    let items = URL(encoding: target).flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: false) }?.queryItems ?? []
    let parameters = Dictionary(items.map { ($0.name, $0.value ?? "") }) { first, _ in first }
    guard parameters.count == items.count else { throw CacheError(.misuse, reason: "a parameter of the purge occurs twice") }
    let mode: PurgeMode
    switch parameters["mode"] {
    case nil, "hard": mode = .hard
    case "soft": mode = .soft
    case let other?: throw CacheError(.misuse, reason: "'\(other)' is not a mode: use 'soft' or 'hard'")
    }
    switch (parameters["tag"], parameters["source"]) {
    case (let tag?, nil): return try await service.manager.purge(.tag(tag), mode, in: .all)
    case (nil, let source?): return try await service.purge(source: source, mode)
    default: throw CacheError(.misuse, reason: "a purge needs either 'tag' or 'source'")
    }
  }
}

extension CodecWorkers.Counters {
  fileprivate var metrics: [String: Int] {
    [
      "etagere_codec_crashes": crashes, "etagere_codec_timeouts": timeouts, "etagere_codec_out_of_memory": outOfMemory,
      "etagere_codec_worker_starts": starts, "etagere_codec_workers_recycled": recycled,
      "etagere_codec_long_jobs": longJobs,
    ]
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
        Console.complain("\(Text.count(keys.count, "signing key", "signing keys")) read")
      } catch let error as SettingsError {
        Console.complain("the signing keys are unchanged: \(error.reason)")
      } catch {
        Console.complain("the signing keys are unchanged: \(error)")
      }
    }
  }
}

/// The Redis server that processes share.
struct SharedTier: Sendable {
  /// Returns the number of lookups and changes that failed on the server.
  let failures: @Sendable () -> Int
  /// Tells the server about the leases that have just ended, and closes the connections.
  let close: @Sendable () async -> Void

  /// Adds the Redis server of the settings to a cache: a shared store below the disk, and the fleet of its processes.
  ///
  /// - Returns: `nil` if the settings have no server.
  /// - Throws: `CacheError.Code.invalidConfiguration` if the URL is not valid, or without the trait `Redis`.
  static func add(
    to cache: inout ResourceManager.Configuration, _ address: String?, _ disk: DiskCache?
  ) throws(CacheError) -> SharedTier? {
    guard let address else { return nil }
    #if Redis
    guard let url = URL(encoding: address) else {
      throw CacheError(.invalidConfiguration, reason: "the setting 'redis' is not a URL")
    }
    let redis = try RedisCache(url: url)
    let stores: [any CacheStore] = if let disk { [disk, redis] } else { [redis] }
    let layers = try LayeredStore(stores)
    cache.store = layers
    cache.fleet = RedisFleet(redis)
    return SharedTier(failures: { layers.counters.layers.last?.failures ?? 0 }, close: { await redis.close() })
    #else
    throw CacheError(
      .invalidConfiguration, reason: "the setting 'redis' needs the trait Redis: swift build --traits Service,Redis")
    #endif
  }
}
#endif
