#if Demo
import ArgumentParser
import Etagere
import Foundation

/// The command `etagere-cli`, which loads resources through the cache, inspects the cache, and demonstrates it.
@main
struct EtagereCommand: AsyncParsableCommand {
  /// The version that `--version` prints.
  static let version = "0.1.0-dev"

  static let configuration = CommandConfiguration(
    commandName: "etagere-cli",
    abstract: "Load resources over HTTP, cache them, and revalidate them.",
    discussion: """
      Results are written to standard output. Errors, progress and notes are written to standard error. Every command takes \
      --json, --quiet and --verbose.

      \(ExitStatus.table)
      """,
    version: version,
    subcommands: loading + [DemoCommand.self] + service)

  #if Tool
  private static let loading: [any ParsableCommand.Type] = [
    GetCommand.self, PrefetchCommand.self, InspectCommand.self, CacheCommand.self,
  ]
  #else
  private static let loading: [any ParsableCommand.Type] = []
  #endif

  #if Service
  private static let service: [any ParsableCommand.Type] = [ServeCommand.self, SignCommand.self]
  #else
  private static let service: [any ParsableCommand.Type] = []
  #endif

  static func main() async {
    #if Service
    ServeCommand.runIfWorker()
    #endif
    ImageDecoder.discardLibraryMessages()
    if let number = firstInvalidArgument {
      Console.complain("argument \(number) is not UTF-8 (in a URL, write %E9 for the byte E9)")
      Foundation.exit(ExitStatus.usage.rawValue)
    }
    do {
      var command = try parseAsRoot()
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch let failure as ToolFailure {
      // The command has reported the failure already, in one line for each resource.
      Foundation.exit(failure.status.rawValue)
    } catch {
      guard exitCode(for: error) != .success else { exit(withError: error) }
      Console.complain(usageError(error))
      Foundation.exit(ExitStatus.usage.rawValue)
    }
  }

  /// The number of the first argument that is not UTF-8. As a `String` it would be the name of another file or URL.
  private static var firstInvalidArgument: Int? {
    (1..<max(1, Int(CommandLine.argc))).first { number in
      CommandLine.unsafeArgv[number].map { String(validatingCString: $0) == nil } ?? false
    }
  }

  /// Returns a usage error as one line. ArgumentParser's own message has several lines of usage after it.
  private static func usageError(_ error: any Error) -> String {
    let lines = fullMessage(for: error).split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
    var reason = lines.prefix { line in !["Usage:", "USAGE:", "Help:"].contains { line.hasPrefix($0) } }.joined(separator: " ")
    for prefix in ["Error: ", "error: "] where reason.hasPrefix(prefix) { reason.removeFirst(prefix.count) }
    if let first = reason.first { reason.replaceSubrange(...reason.startIndex, with: first.lowercased()) }
    let help = lines.lazy.compactMap { $0.firstMatch(of: /See '([^']+)'/)?.output.1 }.first ?? "etagere-cli --help"
    return "\(reason) (see '\(help)')"
  }
}
#else
import Foundation

/// The program without the traits `Tool` and `Demo`, which has no parser for its arguments. It only states how to build it.
@main
struct EtagereCommand {
  static func main() {
    let message = "etagere-cli: the trait Tool is missing: swift build --traits Tool\n"
    try? FileHandle.standardError.write(contentsOf: Data(message.utf8))
    exit(69)  // EX_UNAVAILABLE
  }
}
#endif
