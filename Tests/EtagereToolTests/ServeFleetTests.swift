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

  init() async throws {
    fixture = try ToolFixture()
    // The path of a socket has at most 107 bytes.
    let socket = "\(FileManager.default.temporaryDirectory.path)/serve-\(Hexadecimal.text(Revision.random().low))"
    url = "unix://\(socket)"
    process = Process()
    process.executableURL = URL(filePath: try #require(Self.program))
    process.arguments = ["--dir", fixture.path, "--unixsocket", socket, "--port", "0", "--save", ""]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    try await Turns.until { FileManager.default.fileExists(atPath: socket) }
  }

  func stop() { kill(process.processIdentifier, SIGKILL) }
}

@Suite("etagere serve: several processes", .timeLimit(.minutes(10)))
struct ServeFleetTests {
  @Test(
    "two processes with one Redis server send one request, and a purge reaches both", .enabled(if: SharedServer.program != nil))
  func sharing() async throws {
    let server = try await SharedServer()
    defer { server.stop() }
    try await withOrigin { origin in
      let tag = try #require(HTTPField.Name("Cache-Tag"))
      let image = PixelBuffer(size: PixelSize(40, 30), channels: .rgb) { memory in
        for index in memory.indices { memory[index] = UInt8(truncatingIfNeeded: index) }
      }
      let data = try ImageEncoder.png.encode(DecodedImage(try #require(image)))
      origin.setRoute(
        "/a.png", Route(data, contentType: "image/png", etag: "1", fields: [.cacheControl: "max-age=600", tag: "cats"]))
      let source = "http://127.0.0.1:\(origin.port)/a.png"
      let options = [
        "--origin", "http://127.0.0.1:\(origin.port)", "--private-addresses", "true", "--redis", server.url, "--admin",
        "127.0.0.1:0",
      ]
      let first = try await RunningService(options)
      let second = try await RunningService(options)
      let path = try await first.sign(source, "width=20").dropFirst("http://\(first.address)".count)
      for service in [first, second, first, second] {
        let response = try await service.get("http://\(service.address)\(path)")
        #expect(response.status == 200)
        #expect(try ImageHeader(of: response.data).size == PixelSize(20, 15))
      }
      #expect(origin.requests.count == 1)
      let purge = first.metrics.replacing("/metrics", with: "/purge?tag=cats")
      #expect(try await first.send(.post, purge).status == 200)
      _ = try await second.get("http://\(second.address)\(path)")
      #expect(origin.requests.count == 2)
      #expect(try await first.stop() == 0)
      #expect(try await second.stop() == 0)
    }
  }
}
#endif
