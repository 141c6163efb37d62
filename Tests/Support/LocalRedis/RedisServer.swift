#if Redis && Origin
internal import CacheCore
internal import CacheTesting
package import Foundation
internal import LoopbackOrigin

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A real server on a Unix domain socket or a loopback port, with its files in a temporary folder. It ends with its last
/// reference.
///
/// The scripts install the program. A machine without it skips the tests.
package final class RedisServer: Sendable {
  package static let isInstalled = program != nil

  private static let program = ["valkey-server", "redis-server"].lazy
    .flatMap { name in (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" } }
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  package let folder: String
  private let arguments: [String]
  private let process = Lock<pid_t?>(nil)
  private let port: ReservedPort?
  private let busPort: ReservedPort?

  /// Starts a server and waits until it accepts connections.
  ///
  /// - Parameters:
  ///   - arguments: Further arguments of the program.
  ///   - hasPort: Whether the server also listens on a port, which ``url`` then names.
  ///   - isCluster: Whether the server is a node of a cluster. It then has a port.
  ///   - isStarted: Whether the server is started now.
  package init(_ arguments: [String] = [], hasPort: Bool = false, isCluster: Bool = false, isStarted: Bool = true) async throws {
    // The path of a socket has at most 107 bytes.
    folder = FileManager.default.temporaryDirectory.path + "/redis-\(Hexadecimal.text(Revision.random().low))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    port = hasPort || isCluster ? try ReservedPort() : nil
    busPort = isCluster ? try ReservedPort() : nil
    var all = ["--dir", folder, "--unixsocket", folder + "/socket", "--save", "", "--daemonize", "no", "--bind", "127.0.0.1"]
    all += ["--port", "\(port?.number ?? 0)"]
    if let busPort {
      all += ["--cluster-enabled", "yes", "--cluster-port", "\(busPort.number)", "--cluster-config-file", "nodes.conf"]
    }
    self.arguments = all + arguments
    if isStarted { try await start() }
  }

  deinit {
    kill()
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// The URL of the server's socket, or of its port in a cluster.
  package var url: URL {
    get throws {
      let text = port.map { "redis://127.0.0.1:\($0.number)" } ?? "unix://\(folder)/socket"
      guard let url = URL(string: text) else { throw CacheError(.invalidURL, reason: text) }
      return url
    }
  }

  package var portNumber: Int { port?.number ?? 0 }

  package var busPortNumber: Int { busPort?.number ?? 0 }

  // MARK: The process

  /// Starts the server, also after ``kill()``, and waits until it accepts connections.
  ///
  /// - Parameter further: Arguments of the program for this run.
  package func start(_ further: [String] = []) async throws {
    let process = try spawn(further)
    self.process.withLock { $0 = process }
    let end = ContinuousClock.now + .seconds(60)
    while (try? run(["PING"])) != "+PONG" {
      guard !hasEnded(process), ContinuousClock.now < end else {
        throw CacheError(.connectionRefused, reason: "the server in \(folder) has not started")
      }
      try await Task.sleep(for: .milliseconds(1))
    }
  }

  private func hasEnded(_ started: pid_t) -> Bool {
    process.withLock { process in
      guard process == started else { return true }
      guard waitpid(started, nil, WNOHANG) != 0 else { return false }
      process = nil
      return true
    }
  }

  /// Starts the program in a session of its own, as a service manager does.
  ///
  /// Linux divides the processors between sessions and then between their threads (`sched_autogroup`). In the session of the
  /// calling process, a server with one thread would wait for the many threads of its clients.
  private func spawn(_ further: [String]) throws -> pid_t {
    #if canImport(Darwin)
    var (actions, attributes): (posix_spawn_file_actions_t?, posix_spawnattr_t?)
    let environment = _NSGetEnviron().pointee
    // The server must not keep the sockets of this process open.
    let flags = POSIX_SPAWN_SETSID | POSIX_SPAWN_CLOEXEC_DEFAULT
    #else
    var (actions, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
    let environment = environ
    // POSIX_SPAWN_SETSID, which the modules of glibc and musl lack.
    let flags = 0x80
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    #if canImport(Darwin)
    posix_spawn_file_actions_addinherit_np(&actions, STDERR_FILENO)
    #else
    // The server must not keep the sockets of this process open. A number without a descriptor is ignored.
    for descriptor in Int32(3)..<1_024 { posix_spawn_file_actions_addclose(&actions, descriptor) }
    #endif
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setflags(&attributes, Int16(flags))
    let program = Self.program ?? ""
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments + further).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process = pid_t()
    let failure = posix_spawn(&process, program, &actions, &attributes, &words, environment)
    guard failure == 0 else { throw CacheError(.other, reason: "cannot start '\(program)': error \(failure)") }
    return process
  }

  /// Ends the server without notice.
  package func kill() {
    let process = process.withLock { process in
      defer { process = nil }
      return process
    }
    guard let process else { return }
    // The number stays that of the process until `waitpid` has returned.
    signal(process, SIGKILL)
    while waitpid(process, nil, 0) == -1, errno == EINTR {}
    unlink(folder + "/socket")
    // The number may belong to another process from now on.
    unlink(folder + "/pid")
  }

  package func pause() { process.withLock { if let process = $0 { signal(process, SIGSTOP) } } }

  package func resume() { process.withLock { if let process = $0 { signal(process, SIGCONT) } } }

  private func signal(_ process: pid_t, _ number: Int32) {
    #if canImport(Darwin)
    Darwin.kill(process, number)
    #elseif canImport(Glibc)
    Glibc.kill(process, number)
    #else
    Musl.kill(process, number)
    #endif
  }

  // MARK: Commands

  /// Runs a command on a connection of its own and returns the reply as the server sends it, without the last line break.
  @discardableResult
  package func run(_ command: [String]) throws -> String { try run(command.map { Data($0.utf8) }) }

  /// Runs a command, and throws if the server refuses it or does not reply.
  package func require(_ command: [String]) throws {
    let reply = try run(command)
    guard !reply.isEmpty, !reply.hasPrefix("-") else {
      throw CacheError(.other, reason: "the server refused \(command.prefix(3).joined(separator: " ")): \(reply)")
    }
  }

  @discardableResult
  package func run(_ command: [Data]) throws -> String {
    #if canImport(Glibc)
    let kind = Int32(SOCK_STREAM.rawValue)
    #else
    let kind = SOCK_STREAM
    #endif
    let socket = socket(AF_UNIX, kind, 0)
    defer { close(socket) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array((folder + "/socket").utf8)) }
    let isConnected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 }
    }
    guard isConnected else { throw CacheError(.connectionRefused, reason: "no server at \(folder)") }
    var request = Data("*\(command.count)\r\n".utf8)
    for argument in command { request += Data("$\(argument.count)\r\n".utf8) + argument + Data("\r\n".utf8) }
    request += Data("*1\r\n$4\r\nQUIT\r\n".utf8)
    var sent = 0
    while sent < request.count {
      let count = request.withUnsafeBytes { write(socket, $0.baseAddress?.advanced(by: sent), $0.count - sent) }
      guard count > 0 else { throw CacheError(.connectionLost, reason: "the server closed the connection") }
      sent += count
    }
    var reply = Data()
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(socket, &buffer, buffer.count)
      guard count > 0 else { break }
      reply += buffer[..<count]
    }
    // The reply to QUIT follows.
    return String(decoding: reply.dropLast(7), as: UTF8.self)
  }

  /// The names of all keys.
  package var keys: [String] {
    get throws {
      try run(["KEYS", "*"]).split(separator: "\r\n").filter { !$0.hasPrefix("*") && !$0.hasPrefix("$") }.map(String.init)
    }
  }
}
#endif
