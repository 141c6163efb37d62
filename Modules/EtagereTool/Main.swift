#if Tool
import ArgumentParser
import Foundation

/// `etagere`: loads resources through the cache, looks into the cache, and shows what it does.
@main
struct EtagereCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "etagere",
    abstract: "Loads resources over HTTP, caches them, and keeps them honest.",
    discussion: ExitStatus.table,
    subcommands: [GetCommand.self, PrefetchCommand.self, InspectCommand.self, CacheCommand.self, DemoCommand.self])

  static func main() async {
    do {
      var command = try parseAsRoot()
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch let failure as ToolFailure {
      // What went wrong has been said, a line for each thing.
      Foundation.exit(failure.status.rawValue)
    } catch {
      guard exitCode(for: error) != .success else { exit(withError: error) }
      // ArgumentParser adds its usage, several lines of it: one line says what is wrong, and where help is.
      let lines = message(for: error).split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
      let reason = lines.prefix { !$0.hasPrefix("Usage:") && !$0.hasPrefix("USAGE:") }.joined(separator: " ")
      Console.complain("\(reason) (see etagere --help)")
      Foundation.exit(ExitStatus.usage.rawValue)
    }
  }
}
#else
/// Without the trait `Tool` the package stays free of swift-argument-parser, and this program has nothing to do.
@main
struct EtagereCommand {
  static func main() { print("etagere was built without its trait: swift build --traits Tool") }
}
#endif
