import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The side of a loader's process: reads commands from standard input and lets the loader execute them, all at once.
enum LoaderHost {
  static func run(_ arguments: [String]) async throws {
    guard arguments.count == 4, let kind = LoaderKind(rawValue: arguments[0]) else {
      throw ComparisonError("the arguments of a loader's process are a loader, a folder, a file size and 'slow' or '-'")
    }
    if let bytes = UInt64(arguments[2]) { try limitFileSize(to: bytes) }
    let folder = URL(filePath: arguments[1], directoryHint: .isDirectory)
    let loader = try await kind.open(folder, slowsWrites: arguments[3] == "slow")
    await replies.send(Reply(id: 0))
    await withTaskGroup { group in
      for await command in commands() {
        switch (command.kind, command.url) {
        case (.load, let url?):
          group.addTask {
            do {
              let response = try await loader.load(url, fields: command.fields ?? [:])
              await replies.send(Reply(id: command.id, status: response.status, body: response.body))
            } catch {
              await replies.send(Reply(id: command.id, error: "\(error)"))
            }
          }
        case (.load, nil): await replies.send(Reply(id: command.id, error: "no URL"))
        case (.close, _):
          await group.waitForAll()
          await loader.close()
          await replies.send(Reply(id: command.id))
        }
      }
    }
  }

  /// The commands, read by a thread: the loader needs the main thread and the threads of the pool.
  private static func commands() -> AsyncStream<Command> {
    let (stream, continuation) = AsyncStream.makeStream(of: Command.self)
    Thread.detachNewThread {
      while let line = readLine() {
        guard let command = try? JSONDecoder().decode(Command.self, from: Data(line.utf8)) else { continue }
        continuation.yield(command)
      }
      continuation.finish()
    }
    return stream
  }

  private static let replies = ReplyWriter()

  /// A file that is larger cannot be written: the system's error for it takes the place of a full disk, and needs no rights.
  private static func limitFileSize(to bytes: UInt64) throws {
    signal(SIGXFSZ, SIG_IGN)
    #if canImport(Glibc)
    let resource = __rlimit_resource_t(1)
    #else
    let resource = RLIMIT_FSIZE
    #endif
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { throw ComparisonError("getrlimit failed") }
    limit.rlim_cur = min(rlim_t(bytes), limit.rlim_max)
    guard setrlimit(resource, &limit) == 0 else { throw ComparisonError("setrlimit failed") }
  }
}

/// Writes one reply after another, because several tasks reply. A line can be longer than what a pipe writes atomically.
private actor ReplyWriter {
  func send(_ reply: Reply) {
    guard var line = try? JSONEncoder().encode(reply) else { return }
    line.append(UInt8(ascii: "\n"))
    FileHandle.standardOutput.write(line)
  }
}

/// The comparison itself is broken, and not a loader.
struct ComparisonError: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) { self.description = description }
}
