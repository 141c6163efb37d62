import CacheTesting
import Foundation
import HTTPTypes
import LoopbackOrigin
import NIOCore
import Testing

@testable import GatewayServer

@Suite("A player behind the gateway")
struct PlayerTests {
  /// The length of the film in bytes. Each block of 4 KiB begins with its number.
  private static let length = 200_000_000
  /// The positions to which the player seeks, in bytes.
  private static let positions = Array(stride(from: 180_000_000, through: 0, by: -20_000_000))

  private static let film: Data = {
    var film = Data(count: length)
    film.withUnsafeMutableBytes { bytes in
      for start in stride(from: 0, to: length - 8, by: 4_096) {
        bytes.storeBytes(of: UInt64(start).bigEndian, toByteOffset: start, as: UInt64.self)
      }
    }
    return film
  }()

  /// Reads at least `count` bytes of the film from a position on, and leaves.
  ///
  /// - Returns: The number of bytes that have arrived.
  private func play(_ gateway: GatewayFixture, from position: Int, atLeast count: Int) async throws -> Int {
    let client = try await gateway.client(buffer: 64 << 10)
    try await client.send("GET /film HTTP/1.1\r\nHost: shop.example\r\nRange: bytes=\(position)-\r\n\r\n")
    let head = await client.until("\r\n\r\n")
    let headLength = try #require(head.range(of: "\r\n\r\n")).upperBound.utf16Offset(in: head)
    #expect(head.hasPrefix("HTTP/1.1 206 ") && head.contains("bytes \(position)-\(Self.length - 1)/\(Self.length)"))
    _ = await client.until(bytes: headLength + count)
    client.close()
    var bytes = await client.allBytes()
    bytes.moveReaderIndex(forwardBy: headLength)
    let first = (position + 4_095) / 4_096 * 4_096
    for start in stride(from: first, to: position + bytes.readableBytes - 8, by: 4_096) {
      let number = bytes.getInteger(at: bytes.readerIndex + start - position, as: UInt64.self)
      guard number == UInt64(start) else { throw ContractViolation("the bytes at \(start) are those of \(number ?? 0)") }
    }
    return bytes.readableBytes
  }

  @Test(
    "a player that seeks makes the origin send at most 1.05 times the bytes that it sees, and nothing again",
    arguments: [true, false])
  func seeking(hasDisk: Bool) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "etagere-player-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try await GatewayFixture.run({ $0.cache = CacheSettings { $0.folder = hasDisk ? folder.path : nil } }) { gateway, origin in
      origin.setRoute(
        "/film",
        Route(
          OriginResponse(
            Self.film, contentType: "video/mp4", etag: .strong("1"), fields: [.cacheControl: "max-age=3600"],
            acceptsRanges: true)))
      var (seen, end) = (0, 0)
      for position in Self.positions {
        let count = try await play(gateway, from: position, atLeast: 12 << 20)
        (seen, end) = (seen + count, position + count)
      }
      let sent = origin.counters.bodyBytesSent
      #expect(Double(sent) <= 1.05 * Double(seen), "\(sent) bytes for \(seen)")
      // The last bytes are stored.
      let again = try await gateway.ask("GET", "/film", ["Range: bytes=\(end - 3_000_000)-\(end - 2_000_001)"])
      #expect(again.status == 206 && again["cache-status"]?.contains("hit") == true)
    }
  }

  #if os(Linux)
  @Test("a client that reads nothing makes the origin send no more than the buffers of the connection and a piece")
  func paused() async throws {
    try await GatewayFixture.run({ $0.cache = CacheSettings() }) { gateway, origin in
      origin.setRoute(
        "/film",
        Route(OriginResponse(Self.film, etag: .strong("1"), fields: [.cacheControl: "max-age=3600"], acceptsRanges: true)))
      let client = try await gateway.client(reads: false, buffer: 64 << 10)
      try await client.send("GET /film HTTP/1.1\r\nHost: shop.example\r\nRange: bytes=0-\r\n\r\n")
      // Meanwhile the gateway has the time to send several megabytes.
      for _ in 0..<300 { _ = try await gateway.ask("GET", "/other") }
      let sent = origin.counters(for: "/film").bodyBytesSent
      #expect(sent > 0 && sent <= 1 << 20)
      client.close()
    }
  }
  #endif
}
