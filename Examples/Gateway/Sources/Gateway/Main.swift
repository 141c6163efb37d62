import ArgumentParser
import CacheCore
import Foundation
import GatewayServer
import HTTPServing
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import UnixSignals

/// `Gateway`: a caching reverse proxy.
@main
struct GatewayCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "gateway", abstract: "A caching reverse proxy in front of one origin.",
    discussion: "On SIGTERM or SIGINT it completes the running requests, for up to 30 seconds, and then exits.")

  @OptionGroup(title: "Connections") var places: PlaceOptions
  @OptionGroup(title: "Cache") var cache: CacheOptions
  @OptionGroup(title: "Header fields") var fields: FieldOptions
  @OptionGroup(title: "Operation") var operation: OperationOptions

  func run() async throws {
    var settings = try settings()
    settings.limitConnections(descriptors: DescriptorLimit.raise())
    if settings.maximumConnections < operation.maxConnections {
      Self.tell("the limit of open files allows \(settings.maximumConnections) client connections: raise it (ulimit -n)")
    }
    // Not shut down: the last steps of cancelled requests may still run on its loops, and the process ends here anyway.
    let group = MultiThreadedEventLoopGroup(numberOfThreads: settings.threads)
    var service = GatewayService(settings: settings, group: group)
    service.onRunning = { [settings] ports in
      Self.tell("listening on \(settings.listen.with(ports.listen)), in front of \(places.origin)")
      if let status = settings.status, let port = ports.status { Self.tell("status page on http://\(status.with(port))/") }
    }
    do {
      try await ServiceGroup(
        services: [service], gracefulShutdownSignals: [.sigterm, .sigint], cancellationSignals: [],
        logger: Logger(label: "gateway") { _ in SwiftLogNoOpLogHandler() }
      ).run()
    } catch {
      Self.tell("\(error)")
      throw ExitCode(69)  // EX_UNAVAILABLE
    }
  }

  /// Returns the settings that the options state.
  func settings() throws -> GatewaySettings {
    var settings = GatewaySettings(origin: places.origin, listen: places.listen)
    settings.status = operation.status
    settings.cache = cache.settings
    settings.keepsHost = fields.host == .client
    settings.via = fields.via
    settings.forwards = fields.forwarded
    settings.purgers = operation.purge
    settings.accessLog = operation.accessLog
    settings.threads = operation.threads
    settings.maximumConnections = operation.maxConnections
    settings.originConnections = places.originConnections
    settings.clientTimeout = .seconds(Int64(operation.clientTimeout))
    settings.originTimeout = .seconds(places.originTimeout)
    settings.connectTimeout = .seconds(places.connectTimeout)
    return settings
  }

  private static func tell(_ line: String) { try? FileHandle.standardError.write(contentsOf: Data("gateway: \(line)\n".utf8)) }
}
