#if Gateway
import ArgumentParser
import CacheCore
import Foundation
import GatewayServer
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
    discussion: "It ends in good order on SIGTERM or SIGINT: what runs is answered first, for 30 seconds at most.")

  @OptionGroup(title: "The two sides") var places: PlaceOptions
  @OptionGroup(title: "The cache") var cache: CacheOptions
  @OptionGroup(title: "What goes along") var fields: FieldOptions
  @OptionGroup(title: "Operation") var operation: OperationOptions

  func run() async throws {
    let settings = try settings()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: settings.threads)
    var service = GatewayService(settings: settings, group: group)
    service.onRunning = { ports in
      Self.tell("listening on \(settings.listen.with(ports.listen)), in front of \(places.origin)")
      if let status = settings.status, let port = ports.status { Self.tell("status page on http://\(status.with(port))/") }
    }
    do {
      try await ServiceGroup(
        services: [service], gracefulShutdownSignals: [.sigterm, .sigint], cancellationSignals: [],
        logger: Logger(label: "gateway") { _ in SwiftLogNoOpLogHandler() }
      ).run()
      try await group.shutdownGracefully()
    } catch {
      Self.tell("\(error)")
      throw ExitCode.failure
    }
  }

  /// What the options say.
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

  private static func tell(_ line: String) { FileHandle.standardError.write(Data("gateway: \(line)\n".utf8)) }
}
#else
/// Without the trait `Gateway` the package stays free of HummingbirdCore, and this program has nothing to do.
@main
struct GatewayCommand {
  static func main() { print("Gateway was built without its trait: swift build --traits Gateway") }
}
#endif
