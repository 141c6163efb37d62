#if Tool
import Foundation
import Testing

@Suite("etagere-cli: man page", .timeLimit(.minutes(30)))
struct ManualTests {
  private struct Help: Decodable {
    struct Command: Decodable {
      var commandName: String
      var abstract: String?
      var arguments: [Argument]?
      var subcommands: [Command]?

      var all: [Command] { [self] + (subcommands ?? []).flatMap(\.all) }
    }

    struct Argument: Decodable {
      struct Name: Decodable {
        var name: String
      }

      var names: [Name]?
      var abstract: String?
      var shouldDisplay: Bool
    }

    var command: Command
  }

  /// The page in the repository, which `Scripts/man` writes.
  private static func page() throws -> String {
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardized
    return try String(contentsOf: root.appending(path: "Docs/etagere-cli.1"), encoding: .utf8)
  }

  @Test("the page has every command and option with its description; otherwise run Scripts/man")
  func coverage() async throws {
    let run = try await ToolFixture().run(["--experimental-dump-help"])
    let help = try JSONDecoder().decode(Help.self, from: run.output)
    // Every backslash and every quotation mark is escaped in the page.
    let page = try Self.page().replacing("\\", with: "").replacing("\"", with: "")
    let lines = Set(page.split(separator: "\n").map(String.init))
    let commands = help.command.all.filter { $0.commandName != "help" }
    #expect(commands.map(\.commandName).contains("verify") && commands.count >= 10)
    for command in commands {
      if command.commandName != "etagere-cli" {
        #expect(lines.contains(".It Em \(command.commandName)"), "\(command.commandName)")
      }
      #expect(page.contains(command.abstract ?? ""), "\(command.commandName)")
      for argument in command.arguments ?? [] where argument.shouldDisplay {
        #expect(
          page.contains((argument.abstract ?? "").replacing("\"", with: "")), "\(command.commandName): \(argument.abstract ?? "")"
        )
        for name in argument.names ?? [] { #expect(page.contains(name.name), "\(command.commandName) --\(name.name)") }
      }
    }
  }
}
#endif
