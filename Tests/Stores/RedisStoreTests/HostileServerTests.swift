#if Redis
import CacheCore
import CacheTesting
import Foundation
import Testing

@testable import RedisStore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("Redis store: servers that lie")
struct HostileServerTests {
  private let key = CacheKey(resource: "https://example.com/a")

  private func cache(_ server: HostileServer) throws -> RedisCache {
    let url = try #require(URL(string: "unix://\(server.path)"))
    return try RedisCache(
      url: url,
      configuration: .init {
        // Nothing waits for a timeout.
        ($0.timeout, $0.connectTimeout) = (.seconds(600), .seconds(600))
        $0.connections = 1
      })
  }

  @Test(
    "a reply that its command does not allow closes the connection at once, and the call fails",
    arguments: [
      "$500000000\r\n", "*2147483647\r\n", "*1000000\r\n", "%1\r\n+a\r\n+b\r\n", ":9223372036854775808\r\n",
      "*1\r\n*1\r\n*2147483647\r\n",
      "$100000\r\n",
    ])
  func lookup(reply: String) async throws {
    let server = try HostileServer(reply)
    let cache = try cache(server)
    let error = await failure { try await cache.remove(key, ifRevision: nil) }
    #expect(error?.code == .storeUnavailable)
    #expect(error?.reason.contains("does not speak the Redis protocol") == true)
    #expect(cache.counters.failedCalls == 1)
    // The connection is counted by another task.
    try await Polling.until { cache.counters.lostConnections == 1 }
    await cache.close()
  }

  @Test("an array without end closes the connection when it reaches the limit of its command")
  func endlessArray() async throws {
    let server = try HostileServer("*262000\r\n", thenForever: "$0\r\n\r\n")
    let cache = try cache(server)
    let error = await failure { _ = try await cache.variants(of: key.resource) }
    #expect(error?.code == .storeUnavailable)
    #expect(cache.counters.failedCalls == 1)
    // The connection is counted by another task.
    try await Polling.until { cache.counters.lostConnections == 1 }
    await cache.close()
  }

  @Test("a reply that no command waits for closes the connection")
  func unexpected() async throws {
    let server = try HostileServer(":1\r\n", thenForever: ":1\r\n")
    let cache = try cache(server)
    try await cache.remove(key, ifRevision: nil)
    try await Polling.until { cache.counters.lostConnections > 0 }
    await cache.close()
  }
}

/// A server on a Unix domain socket that accepts the commands of a new connection and then sends the same bytes as its reply.
private final class HostileServer: Sendable {
  let path: String
  private let socket: Int32

  /// - Parameters:
  ///   - reply: The reply to the first command after the handshake.
  ///   - endless: The bytes that follow until the client closes the connection.
  init(_ reply: String, thenForever endless: String = "") throws {
    path = FileManager.default.temporaryDirectory.path + "/hostile-\(Hexadecimal.text(Revision.random().low))"
    #if canImport(Glibc)
    let kind = Int32(SOCK_STREAM.rawValue)
    #else
    let kind = SOCK_STREAM
    #endif
    socket = Self.socket(kind)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let isBound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, size) == 0 }
    }
    try #require(isBound && listen(socket, 16) == 0)
    Thread.detachNewThread { [socket] in
      while case let client = accept(socket, nil, nil), client >= 0 {
        #if canImport(Darwin)
        var isSilent: Int32 = 1
        setsockopt(client, SOL_SOCKET, SO_NOSIGPIPE, &isSilent, 4)
        #endif
        Thread.detachNewThread {
          Self.serve(client, reply, endless)
          close(client)
        }
      }
    }
  }

  deinit {
    shutdown(socket, Int32(SHUT_RDWR))
    close(socket)
    unlink(path)
  }

  private static func socket(_ kind: Int32) -> Int32 {
    #if canImport(Darwin)
    Darwin.socket(AF_UNIX, kind, 0)
    #elseif canImport(Glibc)
    Glibc.socket(AF_UNIX, kind, 0)
    #else
    Musl.socket(AF_UNIX, kind, 0)
    #endif
  }

  private static func serve(_ client: Int32, _ reply: String, _ endless: String) {
    let loading = "LOAD"
    var received = ""
    while received.split(separator: loading, omittingEmptySubsequences: false).count <= Script.allCases.count {
      guard let text = receive(client) else { return }
      received += text
    }
    let handshake = "+PONG\r\n" + String(repeating: "+id\r\n", count: Script.allCases.count)
    guard send(handshake, to: client), receive(client) != nil, send(reply, to: client) else { return }
    let rest = String(repeating: endless, count: 1_000)
    while !rest.isEmpty, send(rest, to: client) {}
    while receive(client) != nil {}
  }

  private static func receive(_ client: Int32) -> String? {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = recv(client, &bytes, bytes.count, 0)
    return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
  }

  private static func send(_ text: String, to client: Int32) -> Bool {
    #if canImport(Darwin)
    let flags: Int32 = 0
    #else
    let flags = Int32(MSG_NOSIGNAL)
    #endif
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { sendBytes(client, $0, flags) }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  private static func sendBytes(_ client: Int32, _ bytes: UnsafeRawBufferPointer, _ flags: Int32) -> Int {
    #if canImport(Darwin)
    Darwin.send(client, bytes.baseAddress, bytes.count, flags)
    #elseif canImport(Glibc)
    Glibc.send(client, bytes.baseAddress, bytes.count, flags)
    #else
    Musl.send(client, bytes.baseAddress, bytes.count, flags)
    #endif
  }
}
#endif
