#if Origin
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A client based on plain sockets, which shows the exact bytes.
///
/// Each blocking call runs on its own thread, because many concurrent clients starved each other on Dispatch's global queue. A
/// read that waits for ten minutes fails.
actor RawClient {
  enum End: Equatable { case closed, reset, timedOut }

  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  private let socket: Int32
  private var buffer: [UInt8] = []
  private var isOpen = true

  init(port: Int) async throws {
    socket = try await Self.blocking { try Self.connected(port) }
  }

  deinit { if isOpen { _ = systemClose(socket) } }

  // MARK: Sending

  func send(_ text: String) async throws { try await send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) async throws {
    let socket = socket
    try await Self.blocking {
      var sent = 0
      while sent < bytes.count {
        let count = bytes[sent...].withUnsafeBytes { systemSend(socket, $0.baseAddress, $0.count) }
        guard count > 0 else { throw Failure(description: "send: errno \(errno)") }
        sent += count
      }
    }
  }

  func get(_ target: String, _ fields: String...) async throws -> RawResponse {
    try await request("GET", target, fields)
  }

  func request(_ method: String, _ target: String, _ fields: [String] = [], body: String = "") async throws -> RawResponse {
    let lines = ["\(method) \(target) HTTP/1.1", "Host: test"] + fields
    try await send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
    return try await response(to: method)
  }

  // MARK: Reading

  /// Reads the next complete response. Bytes after it stay for the next call.
  func response(to method: String = "GET") async throws -> RawResponse {
    var response = RawResponse(head: try await head())
    if method == "HEAD" || response.status < 200 || response.status == 204 || response.status == 304 { return response }
    if response["transfer-encoding"] == "chunked" {
      while true {
        let line = try await take(through: Array("\r\n".utf8))
        let size = try required(Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16), "a chunk's size")
        let chunk = try await take(count: size + 2)
        if size == 0 { return response }
        response.chunks.append(size)
        response.body += chunk.dropLast(2)
      }
    } else if let length = response["content-length"].flatMap({ Int($0) }) {
      response.body = try await take(count: length)
    } else {
      let (bytes, end) = try await rest()
      guard end == .closed else { throw Failure(description: "the body ended with \(end)") }
      response.body = bytes
    }
    return response
  }

  func head() async throws -> String {
    String(decoding: try await take(through: Array("\r\n\r\n".utf8)), as: UTF8.self)
  }

  func take(count: Int) async throws -> [UInt8] {
    while buffer.count < count { try await more() }
    defer { buffer.removeFirst(count) }
    return Array(buffer[..<count])
  }

  /// Reads to the end of the connection.
  func rest() async throws -> (bytes: [UInt8], end: End) {
    while true {
      let (bytes, end) = await read()
      buffer += bytes
      guard let end else { continue }
      defer { buffer = [] }
      return (buffer, end)
    }
  }

  private func take(through mark: [UInt8]) async throws -> [UInt8] {
    var searched = 0
    while true {
      if buffer.count >= mark.count {
        for start in searched...(buffer.count - mark.count) where Array(buffer[start..<start + mark.count]) == mark {
          return try await take(count: start + mark.count)
        }
        searched = buffer.count - mark.count + 1
      }
      try await more()
    }
  }

  private func more() async throws {
    let (bytes, end) = await read()
    buffer += bytes
    if let end { throw Failure(description: "the connection ended (\(end)) after \(String(decoding: buffer, as: UTF8.self))") }
  }

  private func read() async -> ([UInt8], End?) {
    let socket = socket
    let result = try? await Self.blocking { () -> ([UInt8], End?) in
      var bytes = [UInt8](repeating: 0, count: 65_536)
      let count = bytes.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
      if count > 0 { return (Array(bytes[..<count]), nil) }
      return ([], count == 0 ? .closed : errno == ECONNRESET ? .reset : .timedOut)
    }
    return result ?? ([], .timedOut)
  }

  // MARK: Ending

  /// Closes the sending side. The client can still read.
  func finishSending() { _ = shutdown(socket, Int32(SHUT_WR)) }

  func close() {
    guard isOpen else { return }
    isOpen = false
    _ = systemClose(socket)
  }

  // MARK: System

  /// Returns whether a socket that does not share its port can be bound to this port.
  static func canBind(_ port: Int) -> Bool {
    guard let socket = try? made() else { return false }
    defer { _ = systemClose(socket) }
    return withAddress(port) { bind(socket, $0, $1) } == 0
  }

  private static func made() throws -> Int32 {
    #if canImport(Glibc)
    let kind = Int32(SOCK_STREAM.rawValue)
    #else
    let kind = SOCK_STREAM
    #endif
    let socket = systemSocket(AF_INET, kind, 0)
    guard socket >= 0 else { throw Failure(description: "socket: errno \(errno)") }
    return socket
  }

  private static func withAddress(_ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }

  private static func connected(_ port: Int) throws -> Int32 {
    let socket = try made()
    var limit = timeval(tv_sec: 600, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    #if canImport(Darwin)
    var yes: Int32 = 1
    setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &yes, socklen_t(MemoryLayout<Int32>.size))
    #endif
    guard withAddress(port, { systemConnect(socket, $0, $1) }) == 0 else {
      let code = errno
      _ = systemClose(socket)
      throw Failure(description: code == ECONNREFUSED ? "refused" : "connect: errno \(code)")
    }
    return socket
  }

  private static func blocking<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
  }
}

private func required<T>(_ value: T?, _ what: String) throws -> T {
  guard let value else { throw RawClient.Failure(description: "\(what) is missing") }
  return value
}

// Functions for the system calls, whose names the actor's methods hide.
private func systemClose(_ socket: Int32) -> Int32 { close(socket) }
private func systemSocket(_ domain: Int32, _ kind: Int32, _ proto: Int32) -> Int32 { socket(domain, kind, proto) }
private func systemConnect(_ socket: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32 {
  connect(socket, address, length)
}
private func systemSend(_ socket: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  #if canImport(Darwin)
  send(socket, bytes, count, 0)
  #else
  send(socket, bytes, count, Int32(MSG_NOSIGNAL))
  #endif
}
#endif
