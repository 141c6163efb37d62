import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A loader in a separate process of this program, so that a crash or a hang of the loader is a result.
final class LoaderProcess {
  private let process: pid_t
  private let input: Int32
  private let output: Int32
  private var buffer: [UInt8] = []
  private var replies: [Int: Reply] = [:]
  private var lastID = 0
  private var isOver = false

  /// The time limit of a reply.
  static let patience: Duration = .seconds(15)

  /// Starts the loader and waits until it is open.
  ///
  /// - Parameters:
  ///   - fileSizeLimit: The largest file that the process can write, in bytes.
  ///   - slowsWrites: Whether the control pauses in the middle of each file, as on a slow disk.
  init(_ kind: LoaderKind, folder: URL, fileSizeLimit: Int? = nil, slowsWrites: Bool = false) throws {
    var toChild: [Int32] = [0, 0]
    var fromChild: [Int32] = [0, 0]
    guard pipe(&toChild) == 0, pipe(&fromChild) == 0 else { throw ComparisonError("pipe: \(Self.text(errno))") }
    // A child that inherited the origin's socket would keep its port open when the origin stops.
    for descriptor in 3..<Int32(1024) { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    #if canImport(Darwin)
    var actions: posix_spawn_file_actions_t?
    #else
    var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, toChild[0], STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, fromChild[1], STDOUT_FILENO)
    if ProcessInfo.processInfo.environment["COMPARISON_VERBOSE"] == nil {
      posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    }
    let program = Bundle.main.executablePath ?? CommandLine.arguments[0]
    let arguments = [
      program, "loader", kind.rawValue, folder.path, fileSizeLimit.map(String.init) ?? "-", slowsWrites ? "slow" : "-",
    ]
    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process = pid_t()
    let failure = posix_spawn(&process, program, &actions, nil, &words, Self.environment)
    close(toChild[0])
    close(fromChild[1])
    guard failure == 0 else { throw ComparisonError("cannot start \(program): \(Self.text(failure))") }
    (self.process, input, output) = (process, toChild[1], fromChild[0])
    // Its first line says that it is open.
    _ = try reply(to: 0)
  }

  private static var environment: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? {
    // A backtrace of a crash takes seconds.
    setenv("SWIFT_BACKTRACE", "enable=no", 1)
    #if canImport(Darwin)
    return _NSGetEnviron().pointee
    #else
    return environ
    #endif
  }

  deinit {
    kill()
    close(input)
    close(output)
  }

  /// Starts a load; `reply(to:)` gives its result.
  func start(_ url: URL, fields: [String: String] = [:]) throws -> Int {
    try send(Command(id: nextID(), kind: .load, url: url, fields: fields))
  }

  /// Loads and waits for the result.
  func load(_ url: URL, fields: [String: String] = [:]) throws -> Reply {
    try reply(to: start(url, fields: fields))
  }

  /// Ends the process after the loader has stored all responses.
  func end() throws {
    _ = try reply(to: send(Command(id: nextID(), kind: .close)))
    kill()
  }

  /// Ends the process with SIGKILL.
  func kill() {
    guard !isOver else { return }
    isOver = true
    #if canImport(Glibc)
    Glibc.kill(process, SIGKILL)
    #elseif canImport(Musl)
    Musl.kill(process, SIGKILL)
    #else
    Darwin.kill(process, SIGKILL)
    #endif
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
  }

  private func nextID() -> Int {
    lastID += 1
    return lastID
  }

  private func send(_ command: Command) throws -> Int {
    var line = Array(try JSONEncoder().encode(command))
    line.append(UInt8(ascii: "\n"))
    var sent = 0
    while sent < line.count {
      let count = line[sent...].withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
      guard count > 0 else { throw crash() }
      sent += count
    }
    return command.id
  }

  /// Waits for the reply to a command.
  ///
  /// - Throws: `LoaderFailure` if the process ends first, or if the reply does not arrive within the limit.
  func reply(to id: Int) throws -> Reply {
    let end = ContinuousClock.now + Self.patience
    while true {
      if let reply = replies.removeValue(forKey: id) { return reply }
      let left = end - ContinuousClock.now
      guard left > .zero else { throw LoaderFailure.timedOut }
      var descriptor = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      guard poll(&descriptor, 1, Int32(left.components.seconds * 1000 + 1)) > 0 else { continue }
      guard fill() else { throw crash() }
      readLines()
    }
  }

  private func fill() -> Bool {
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    let count = read(output, &piece, piece.count)
    guard count > 0 else { return count < 0 && errno == EINTR }
    buffer += piece[..<count]
    return true
  }

  private func readLines() {
    guard let last = buffer.lastIndex(of: UInt8(ascii: "\n")) else { return }
    for line in buffer[...last].split(separator: UInt8(ascii: "\n")) {
      // A loader may print to standard output, too.
      guard let reply = try? JSONDecoder().decode(Reply.self, from: Data(line)) else { continue }
      replies[reply.id] = reply
    }
    buffer.removeSubrange(...last)
  }

  /// The end of the process as an error.
  private func crash() -> LoaderFailure {
    var status: Int32 = 0
    while !isOver, waitpid(process, &status, 0) < 0, errno == EINTR {}
    isOver = true
    return status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .crashed(signal: status & 0x7f)
  }

  private static func text(_ number: Int32) -> String { String(cString: strerror(number)) }
}

/// The end of a loader's process before its reply.
enum LoaderFailure: Error, CustomStringConvertible {
  case timedOut
  case exited(Int32)
  case crashed(signal: Int32)

  var description: String {
    switch self {
    case .timedOut: "no result within \(LoaderProcess.patience.components.seconds) s"
    case .exited(let status): "the process exits with status \(status)"
    case .crashed(let signal): "the process crashes with signal \(signal)"
    }
  }
}
