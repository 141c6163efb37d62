package import CacheCore
package import Foundation
import ImageWorkers

#if canImport(Glibc)
import Glibc
#endif

/// The program of the workers in tests: its jobs do what a codec that a file has taken over could do.
@main
enum TrialWorker {
  static func main() {
    WorkerProgram.runIfWorker([TrialJob.self, TrialRendering.self])
    print("not a worker")
  }
}

/// A job with the name of an image service's. The bytes of the source name a ``TrialJob/Action``.
struct TrialRendering: WorkerJob {
  struct Result: Codable, Sendable {
    var mediaType = "image/png"
    var isSource = false
  }

  static let name = "render"
  /// The settings of the service's job are not read.
  private enum CodingKeys: CodingKey {}
  var timeLimit: Duration = .seconds(60)
  var resultLimit: Int { 64 << 20 }

  func run(on source: Data, memoryLimit: Int) throws(CacheError) -> (Result, Data) {
    let png = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    switch String(decoding: source, as: UTF8.self) {
    case "echo": return (Result(), png)
    case "timeOut": throw CacheError(.codecTimedOut, reason: "PNG: decoding took longer than the limit")
    case "asSource": return (Result(mediaType: "text/html", isSource: true), Data())
    case "asText": return (Result(mediaType: "image/png"), Data("<html>".utf8))
    case let name:
      return (Result(), try TrialJob(TrialJob.Action(rawValue: name) ?? .echo).run(on: source, memoryLimit: memoryLimit).1)
    }
  }
}

/// A job that tries what a confined process cannot do, and reports the result.
package struct TrialJob: WorkerJob {
  package enum Action: String, Codable, CaseIterable, Sendable {
    /// Returns the source.
    case echo
    /// Fails with an error of its own.
    case fail
    /// Fails with the code that the path names.
    case failWith
    /// Sends one byte of a long reply at a time.
    case trickle
    /// Returns the variables, the descriptors and some limits.
    case inventory
    /// Returns the identifier of the process.
    case identify
    /// Ends the process by a signal.
    case abort
    /// Ends the process with a status.
    case exit
    /// Computes without an end.
    case loop
    /// Waits without an end.
    case sleep
    /// Allocates memory without an end.
    case allocate
    /// Fails as a library does that gets no memory.
    case failToAllocate
    /// Sends bytes that are no reply.
    case babble
    /// Announces a reply of 2^62 bytes.
    case announce
    /// Writes many messages to standard error, and returns the source.
    case complain

    /// Reads a file that is not needed for images.
    case readFile
    case createFile
    case overwriteFile
    case removeFile
    case changePermissions
    case connect
    case connectPair
    case startProgram
    case signalParent
    case signalByDescriptor
    case readParent
    case slowParent
    case stopItself
    case raiseLimit
  }

  package static let name = "trial"
  package var resultLimit: Int { 64 << 20 }
  package var timeLimit: Duration = .seconds(60)
  package var action: Action
  /// A path for the actions on files.
  package var path: String

  package init(_ action: Action, path: String = "") { (self.action, self.path) = (action, path) }

  package func run(on source: Data, memoryLimit: Int) throws(CacheError) -> (String, Data) {
    switch action {
    case .echo: return ("echo", source)
    case .fail: throw CacheError(.decodingFailed, reason: "PNG: the file is truncated")
    case .failWith: throw CacheError(.init(rawValue: path), reason: "a reason")
    case .inventory: return (inventory, Data())
    case .identify: return ("\(getpid())", Data())
    case .complain:
      let line = Data("a message of a library\n".utf8)
      for _ in 0..<20_000 { _ = line.withUnsafeBytes { write(2, $0.baseAddress, $0.count) } }
      return ("complained", source)
    default: return (end() ?? attempt(), Data())
    }
  }

  /// Does what ends the process, or returns `nil`.
  private func end() -> String? {
    switch action {
    case .abort: Glibc.abort()
    case .exit: Glibc.exit(3)
    case .loop:
      var count: UInt64 = 0
      while true { count &+= 1 }
    case .sleep: while true { pause() }
    case .allocate:
      while true {
        guard let block = malloc(1 << 20) else { Glibc.abort() }
        memset(block, 1, 1 << 20)
      }
    case .failToAllocate:
      guard malloc(1 << 34) == nil else { return "allocated" }
      let line = Data("GLib-ERROR **: failed to allocate 17179869184 bytes\n".utf8)
      _ = line.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
      Glibc.abort()
    case .trickle:
      // A document of 200,000 bytes, and no data.
      let start = Data([0x40, 0x0D, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
      _ = start.withUnsafeBytes { write(0, $0.baseAddress, $0.count) }
      while true {
        _ = write(0, "x", 1)
        usleep(100)
      }
    case .babble, .announce:
      let text = action == .babble ? Data("HTTP/1.1 200 OK\r\n\r\n".utf8) : Data(repeating: 0x3F, count: 16)
      _ = text.withUnsafeBytes { write(0, $0.baseAddress, $0.count) }
      while true { pause() }
    default: return nil
    }
  }

  /// Tries to do what a codec does not need. Returns `done`, or the error.
  private func attempt() -> String {
    let status: Int =
      switch action {
      case .readFile: Int(open(path, O_RDONLY))
      case .createFile: Int(open(path + ".new", O_WRONLY | O_CREAT, 0o600))
      case .overwriteFile: Int(open(path, O_WRONLY))
      case .removeFile: Int(unlink(path))
      case .changePermissions: Int(chmod(path, 0))
      case .connectPair: socketPair()
      case .signalByDescriptor: Int(fcntl(0, F_SETOWN, getppid()))
      case .slowParent: lowerPriority()
      case .stopItself: Int(pthread_kill(pthread_self(), SIGSTOP)) == 0 ? 0 : fail(EPERM)
      case .connect: Int(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
      case .startProgram: startProgram()
      case .signalParent: Int(kill(getppid(), SIGTERM))
      case .readParent: Int(open("/proc/\(getppid())/environ", O_RDONLY))
      case .raiseLimit: raiseLimit()
      default: -1
      }
    return status == -1 ? String(cString: strerror(errno)) : "done"
  }
  private func fail(_ number: Int32) -> Int {
    errno = number
    return -1
  }

  private func socketPair() -> Int {
    var ends: [Int32] = [0, 0]
    return Int(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &ends))
  }

  private func lowerPriority() -> Int { Int(setpriority(Int32(PRIO_PROCESS.rawValue), id_t(getppid()), 19)) }

  private var inventory: String {
    let variables = ProcessInfo.processInfo.environment.map { "\($0)=\($1)" }
    let descriptors = (0..<128).filter { fcntl($0, F_GETFD) != -1 }.map { "\($0)" }.joined(separator: " ")
    var (files, cores) = (rlimit(), rlimit())
    getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &files)
    getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &cores)
    return (variables + ["descriptors \(descriptors)", "files \(files.rlim_max) cores \(cores.rlim_max)"]).joined(separator: "\n")
  }

  /// Returns 0 if another program started.
  private func startProgram() -> Int {
    var process = pid_t(0)
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("/bin/true"), nil]
    defer { free(arguments[0]) }
    let error = posix_spawn(&process, "/bin/true", nil, nil, &arguments, environ)
    errno = error
    return error == 0 ? 0 : -1
  }

  /// Returns 0 if the limit of memory was raised.
  private func raiseLimit() -> Int {
    var limit = rlimit(rlim_cur: .max, rlim_max: .max)
    return Int(setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit))
  }
}
