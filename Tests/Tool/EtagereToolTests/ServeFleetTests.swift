#if Tool && Service && Redis
import CacheTesting
import Etagere
import Foundation
import HTTPTypes
import LoopbackOrigin
import Testing

/// A Redis server on a socket in a temporary folder.
private final class SharedServer: Sendable {
  static let program = ["valkey-server", "redis-server"].lazy
    .flatMap { name in (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" } }
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  let url: String
  private let process: Process
  private let fixture: ToolFixture

  /// - Parameter isFull: Whether the server accepts no entries, because it has no memory for them.
  init(isFull: Bool = false) async throws {
    fixture = try ToolFixture()
    // The path of a socket has at most 107 bytes.
    let socket = "\(FileManager.default.temporaryDirectory.path)/serve-\(Hexadecimal.text(Revision.random().low))"
    url = "unix://\(socket)"
    process = Process()
    process.executableURL = URL(filePath: try #require(Self.program))
    process.arguments = ["--dir", fixture.path, "--unixsocket", socket, "--port", "0", "--save", ""]
    if isFull { process.arguments? += ["--maxmemory", "1"] }
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    try await Polling.until { FileManager.default.fileExists(atPath: socket) }
  }

  /// Stops the server, and returns when its process has ended.
  func stop() {
    guard process.isRunning else { return }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

@Suite("etagere-cli serve: several processes", .timeLimit(.minutes(30)))
struct ServeFleetTests {
  @Test("two processes share a result, and after a purge both have the new one", .enabled(if: SharedServer.program != nil))
  func sharing() async throws {
    let server = try await SharedServer()
    defer { server.stop() }
    try await withOrigin { origin in
      let source = "http://127.0.0.1:\(origin.port)/a.png"
      let options = [
        "--origin", "http://127.0.0.1:\(origin.port)", "--private-addresses", "true", "--redis", server.url, "--admin",
        "127.0.0.1:0",
      ]
      try serve(PixelSize(40, 30), etag: "1", origin)
      let services = [try await RunningService(options), try await RunningService(options)]
      let path = try await services[0].sign(source, "width=20").dropFirst("http://\(services[0].address)".count)
      func size(from service: RunningService) async throws -> PixelSize {
        let response = try await service.get("http://\(service.address)\(path)")
        #expect(response.status == 200)
        return try ImageHeader(of: response.data).size
      }
      for service in services {
        // A process that has just joined asks the origin about each response, until it has caught up with the others' purges.
        try await Polling.until {
          let response = try await service.get("http://\(service.address)\(path)")
          return try response.fields[#require(HTTPField.Name("Cache-Status"))]?.contains("hit") == true
        }
        #expect(try await size(from: service) == PixelSize(20, 15))
        #expect(try await service.get("http://\(service.address)/readyz").status == 200)
      }
      // Any other request confirms the response by its entity tag.
      #expect(origin.requests.filter { $0.head.headerFields[.ifNoneMatch] == nil }.count == 1)

      try serve(PixelSize(40, 80), etag: "2", origin)
      let purge = services[0].metrics.replacing("/metrics", with: "/purge?tag=cats")
      #expect(try await services[0].send(.post, purge).status == 200)
      for service in services { #expect(try await size(from: service) == PixelSize(20, 40)) }
      for service in services { #expect(try await service.stop() == 0) }
    }
  }

  @Test(
    "without the server, a service responds, and its metrics show the outage",
    .enabled(if: SharedServer.program != nil))
  func outage() async throws {
    let server = try await SharedServer()
    defer { server.stop() }
    try await withOrigin { origin in
      let folder = try ToolFixture()
      let (service, image) = try await self.service(origin, server, folder)
      try await Polling.until { try await metrics(of: service).contains("etagere_fleet_current 1\n") }
      server.stop()
      try await Polling.until { try await metrics(of: service).contains("etagere_fleet_current 0\n") }
      let before = try await metrics(of: service)
      #expect(!before.contains("etagere_store_failures"), "\(before)")
      #expect(before.contains("etagere_redis_failures 0\n"), "\(before)")
      #expect(try await service.get(image).status == 200)
      let after = try await metrics(of: service)
      #expect(after.contains(#"etagere_store_failures{operation="read",code="storeUnavailable"}"#), "\(after)")
      #expect(!after.contains(#"etagere_store_failures{operation="write""#), "\(after)")
      #expect(try await service.stop() == 0)
    }
  }

  @Test(
    "with a full server, a service responds, and its metrics show the failed writes",
    .enabled(if: SharedServer.program != nil))
  func full() async throws {
    let server = try await SharedServer(isFull: true)
    defer { server.stop() }
    try await withOrigin { origin in
      let folder = try ToolFixture()
      let (service, image) = try await self.service(origin, server, folder)
      #expect(try await metrics(of: service).contains("etagere_redis_failures 0\n"))
      #expect(try await service.get(image).status == 200)
      try await Polling.until { try await !metrics(of: service).contains("etagere_redis_failures 0\n") }
      #expect(try await service.stop() == 0)
    }
  }

  /// Returns a service with a disk and an operators' port, and the URL of an image that it can make.
  private func service(
    _ origin: OriginServer, _ server: SharedServer, _ folder: ToolFixture
  ) async throws -> (RunningService, image: String) {
    let address = "http://127.0.0.1:\(origin.port)"
    try serve(PixelSize(40, 30), etag: "1", origin)
    let service = try await RunningService([
      "--origin", address, "--private-addresses", "true", "--cache-folder", folder.path, "--redis", server.url, "--admin",
      "127.0.0.1:0",
    ])
    return (service, try await service.sign("\(address)/a.png", "width=20"))
  }

  private func metrics(of service: RunningService) async throws -> String {
    String(decoding: try await service.get(service.metrics).data, as: UTF8.self)
  }

  private func serve(_ size: PixelSize, etag: OriginETag, _ origin: OriginServer) throws {
    let image = PixelBuffer(size: size, channels: .rgb) { memory in
      for index in memory.indices { memory[index] = UInt8(truncatingIfNeeded: index) }
    }
    let fields: HTTPFields = [.cacheControl: "max-age=600", try #require(HTTPField.Name("Cache-Tag")): "cats"]
    let data = try ImageEncoder.png.encode(DecodedImage(try #require(image)))
    origin.setRoute("/a.png", Route(data, contentType: "image/png", etag: etag, fields: fields))
  }
}
#endif
