import ArgumentParser
import Foundation
import GatewayServer
import HTTPServing
import Logging
import LoopbackOrigin
import NIOCore
import NIOPosix
import ServiceLifecycle
import UnixSignals

/// `Gallery`: a wall of images that shows what the cache does.
@main
struct GalleryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "gallery", abstract: "A wall of images behind the gateway, in front of an origin with a slow link.",
    discussion: "Open the page in a browser. On SIGINT (Control-C) or SIGTERM it completes the running requests and then exits.")

  @Option(
    help: ArgumentHelp("The address of the page (default: 127.0.0.1:8080). Port 0 selects a free port.", valueName: "host:port"),
    transform: Self.hostAndPort)
  var listen = GallerySettings().listen

  @Option(help: ArgumentHelp("The latency of the origin's link, one way.", valueName: "milliseconds"))
  var latency = 20

  @Option(help: ArgumentHelp("The bandwidth of the origin's link.", valueName: "Mbit/s"))
  var bandwidth = 8.0

  func validate() throws {
    guard (0...10_000).contains(latency) else {
      throw ValidationError("--latency \(latency) is not between 0 and 10000 milliseconds")
    }
    guard (0.01...10_000).contains(bandwidth) else {
      throw ValidationError("--bandwidth \(bandwidth) is not between 0.01 and 10000 Mbit/s")
    }
  }

  /// The settings that the options state.
  var settings: GallerySettings {
    GallerySettings(
      listen: listen, link: NetworkLink(bitsPerSecond: Int(bandwidth * 1_000_000), latency: .milliseconds(latency)))
  }

  func run() async throws {
    // Not shut down: the last steps of cancelled requests may still run on its loops, and the process ends here anyway.
    let group = MultiThreadedEventLoopGroup(numberOfThreads: System.coreCount)
    var service = GalleryService(settings: settings, group: group)
    service.onRunning = { [listen] port in
      Self.tell("open http://\(listen.with(port))/ in a browser, and press Control-C to exit")
    }
    do {
      try await ServiceGroup(
        services: [service], gracefulShutdownSignals: [.sigterm, .sigint], cancellationSignals: [],
        logger: Logger(label: "gallery") { _ in SwiftLogNoOpLogHandler() }
      ).run()
    } catch {
      Self.tell("\(error)")
      throw ExitCode(69)  // EX_UNAVAILABLE
    }
  }

  private static func hostAndPort(_ text: String) throws -> HostAndPort {
    guard let place = HostAndPort(text) else { throw ValidationError("'\(text)' is not HOST:PORT") }
    return place
  }

  private static func tell(_ line: String) { try? FileHandle.standardError.write(contentsOf: Data("gallery: \(line)\n".utf8)) }
}
