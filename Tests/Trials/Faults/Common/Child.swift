import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Another process of this program, whose standard output is read line by line.
final class Child {
  let process: pid_t
  private let output: Int32
  private var buffer: [UInt8] = []
  private var status: Int32?

  static var program: String { Bundle.main.executablePath ?? CommandLine.arguments[0] }

  /// Starts this program, or the one whose path is given, with `arguments`. It must not outlive this process, because its output
  /// would have no reader.
  init(_ arguments: [String], program: String = Child.program) throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw FailedCheck("pipe: \(Self.text(errno))") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    #if canImport(Darwin)
    var actions: posix_spawn_file_actions_t?
    #else
    var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process = pid_t()
    let failure = posix_spawnp(&process, program, &actions, nil, &words, Self.environment)
    close(ends[1])
    guard failure == 0 else { throw FailedCheck("cannot start \(program): \(Self.text(failure))") }
    self.process = process
    output = ends[0]
  }

  private static var environment: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? {
    #if canImport(Darwin)
    _NSGetEnviron().pointee
    #else
    environ
    #endif
  }

  deinit {
    if status == nil { end(kills: true) }
    close(output)
  }

  /// Returns the next line, or `nil` if none arrives in time or the output has ended.
  func line(within milliseconds: Int32) -> String? {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffer.removeSubrange(...end) }
        return String(decoding: buffer[..<end], as: UTF8.self)
      }
      var descriptor = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      guard poll(&descriptor, 1, milliseconds) > 0, fill() else { return nil }
    }
  }

  /// Returns the rest of the output.
  func rest() -> [String] {
    while fill() {}
    defer { buffer = [] }
    return String(decoding: buffer, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private func fill() -> Bool {
    var piece = [UInt8](repeating: 0, count: 4096)
    let count = read(output, &piece, piece.count)
    guard count > 0 else { return count < 0 && errno == EINTR }
    buffer += piece[..<count]
    return true
  }

  /// The way in which a process has ended.
  enum End: Equatable { case exited(Int32), killed(Int32) }

  /// Whether the process has ended.
  var hasEnded: Bool {
    var found: Int32 = 0
    if status == nil, waitpid(process, &found, WNOHANG) == process { status = found }
    return status != nil
  }

  /// Waits for the end of the process.
  ///
  /// - Parameter kills: Whether the process is killed first.
  @discardableResult
  func end(kills: Bool) -> End {
    if kills, status == nil { kill(process, SIGKILL) }
    var found = status ?? 0
    while status == nil, waitpid(process, &found, 0) < 0, errno == EINTR {}
    status = found
    return found & 0x7f == 0 ? .exited(found >> 8 & 0xff) : .killed(found & 0x7f)
  }

  private static func text(_ number: Int32) -> String { String(cString: strerror(number)) }
}

/// The roles of child processes.
enum Children {
  static func run(_ arguments: [String]) async throws {
    // A child that kept the sockets of an origin would keep connections open that the parent process has closed.
    for descriptor in STDERR_FILENO + 1..<4_096 { close(descriptor) }
    switch arguments.first {
    case "kill": try await KillWriter(arguments: arguments.dropFirst()).run()
    case "flips":
      let run = try FlipRun(arguments: arguments.dropFirst())
      try await run.run()
    case "hammer":
      var worker = try HammerWorker(arguments: arguments.dropFirst())
      try await worker.run()
    case "environment": try await EnvironmentSuite.runChild(Array(arguments.dropFirst()))
    #if Redis && Origin
    case "redis": try await RedisWorker(arguments: arguments.dropFirst()).run()
    #endif
    #if Redis && Origin && Service && SQLite
    case "soak-node": try await SoakNode(arguments: arguments.dropFirst()).run()
    case "soak-gateway": try await SoakGateway(arguments: arguments.dropFirst()).run()
    #endif
    default: throw FailedCheck("'child' needs a role and its arguments")
    }
  }

  /// Sends a line to the parent process, unbuffered.
  static func tell(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
  }
}
