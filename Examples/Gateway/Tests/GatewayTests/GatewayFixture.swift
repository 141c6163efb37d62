import CacheCore
import CacheTesting
import Foundation
import HTTPServing
import HTTPTypes
import Logging
import LoopbackOrigin
import NIOCore
import NIOPosix
import ServiceLifecycle
import Testing

@testable import GatewayServer

/// A gateway on free ports, which is shut down when the test ends or throws.
struct GatewayFixture: Sendable {
  let port: Int
  let statusPort: Int?
  private let group: ServiceGroup

  /// Runs a gateway in front of a `LoopbackOrigin` server.
  static func run(
    _ change: (inout GatewaySettings) -> Void = { _ in },
    _ body: (GatewayFixture, OriginServer) async throws -> Void
  ) async throws {
    let origin = try await OriginServer.start(requestBodyLimit: 1 << 30)
    do {
      try await run(inFrontOf: origin.port, change) { try await body($0, origin) }
    } catch {
      await origin.stop()
      throw error
    }
    await origin.stop()
  }

  /// Runs a gateway in front of a port.
  static func run(
    inFrontOf port: Int, clock: any CacheClock = SystemClock(), _ change: (inout GatewaySettings) -> Void = { _ in },
    _ body: (GatewayFixture) async throws -> Void
  ) async throws {
    var settings = GatewaySettings(
      origin: try #require(OriginAddress("http://127.0.0.1:\(port)")), listen: HostAndPort(host: "127.0.0.1", port: 0))
    settings.shutdownIdleTime = .zero
    // Test machines are busy, so only tests that set a time-out depend on one.
    (settings.clientTimeout, settings.halfClosedTime, settings.originTimeout) = (.seconds(600), .seconds(600), .seconds(600))
    settings.connectTimeout = .seconds(600)
    change(&settings)
    settings.cache?.waitsForDisk = true
    let ports = WatchedState<GatewayService.Ports?>(nil)
    var service = GatewayService(settings: settings, group: MultiThreadedEventLoopGroup.singleton)
    service.clock = clock
    service.onRunning = { opened in ports.update { $0 = opened } }
    let group = ServiceGroup(services: [service], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let running = Task { try await group.run() }
    await ports.wait { $0 != nil }
    do {
      let opened = try #require(ports.read { $0 })
      try await body(GatewayFixture(port: opened.listen, statusPort: opened.status, group: group))
    } catch {
      await group.triggerGracefulShutdown()
      _ = await running.result
      throw error
    }
    await group.triggerGracefulShutdown()
    try await running.value
  }

  func shutDown() async { await group.triggerGracefulShutdown() }

  func client(reads: Bool = true, buffer: Int? = nil) async throws -> RawClient {
    try await RawClient.connect(port, reads: reads, buffer: buffer)
  }

  /// Sends one request over a new connection.
  ///
  /// - Parameters:
  ///   - method: The method.
  ///   - target: The target, sent unchanged.
  ///   - fields: The field lines after `Host`.
  ///   - body: The body, which is sent with its length, or `nil` for none.
  func ask(_ method: String, _ target: String, _ fields: [String] = [], body: String? = nil) async throws -> RawAnswer {
    let client = try await client()
    defer { client.close() }
    var lines = ["\(method) \(target) HTTP/1.1", "Host: shop.example"] + fields
    if let body { lines.append("Content-Length: \(body.utf8.count)") }
    try await client.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
    return try await client.answer(to: method)
  }

  func get(_ target: String, _ fields: String...) async throws -> RawAnswer { try await ask("GET", target, fields) }

  /// Returns whether the gateway still serves requests.
  func isAlive(_ origin: OriginServer) async throws -> Bool {
    origin.setRoute("/alive", Route(OriginResponse(text: "alive")))
    return try await get("/alive").body == "alive"
  }
}
