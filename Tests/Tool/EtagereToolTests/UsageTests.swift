#if Tool
import Etagere
import Foundation
import Testing

@testable import EtagereTool

@Suite("etagere-cli: command line", .timeLimit(.minutes(30)))
struct UsageTests {
  @Test(
    "an invalid command line is one line on standard error with status 64, and nothing is done",
    arguments: [
      (["get", "--bogus", "data:,a"], "unknown option '--bogus'"),
      (["get"], "missing expected argument"),
      (["got", "data:,a"], "2 unexpected arguments: 'got', 'data:,a'"),
      (["cache", "empty"], "unexpected argument 'empty'"),
      (["get", "--header", "bad", "data:,a"], "--header takes 'Name: value', not 'bad'"),
      (["get", "--header", "b d: x", "data:,a"], "--header takes 'Name: value', not 'b d: x'"),
      (["get", "--timeout", "0", "data:,a"], "--timeout takes a number of seconds above 0 and up to 86400"),
      (["get", "--timeout", "1e400", "data:,a"], "--timeout takes a number of seconds above 0 and up to 86400"),
      (["get", "--timeout", "nan", "data:,a"], "--timeout takes a number of seconds above 0 and up to 86400"),
      (["get", "--timeout=-1", "data:,a"], "--timeout takes a number of seconds above 0 and up to 86400"),
      (["get", "--timeout", "9223372036854775807d", "data:,a"], "the value '9223372036854775807d' is invalid for '--timeout"),
      (["get", "--parallel", "9223372036854775808", "data:,a"], "the value '9223372036854775808' is invalid for '--parallel"),
      (["get", "--timeout", "soon", "data:,a"], "the value 'soon' is invalid for '--timeout"),
      (["get", "--parallel", "0", "data:,a"], "--parallel takes a number from 1 to 256"),
      (["get", "--policy", "never", "data:,a"], "the value 'never' is invalid for '--policy"),
      (["get", "-o", "-", "data:,a", "data:,b"], "--output - takes only one URL"),
      (["get", "--json", "-o", "-", "data:,a"], "--json and --output - exclude each other"),
      (["get", "--resize", "0x", "data:,a"], "the value '0x' is invalid for '--resize"),
      (["get", "--resize", "x", "data:,a"], "the value 'x' is invalid for '--resize"),
      (["get", "--resize", "4x^", "data:,a"], "the value '4x^' is invalid for '--resize"),
      (["get", "--resize", "99999x4", "data:,a"], "the value '99999x4' is invalid for '--resize"),
      (["get", "--format", "svg", "data:,a"], "the value 'svg' is invalid for '--format"),
      (["get", "--quality", "0", "data:,a"], "--quality takes a number from 1 to 100"),
      (["inspect"], "missing expected argument"),
      (["demo", "--parallel", "65"], "--parallel takes a number from 1 to 64"),
      (["demo", "--images", "--report", "a.html"], "--report and --images exclude each other"),
      (["get", "--quiet", "--verbose", "data:,a"], "--quiet and --verbose exclude each other"),
      (["cache", "list", "-q", "-v"], "--quiet and --verbose exclude each other"),
    ])
  func usage(_ arguments: [String], _ reason: String) async throws {
    let fixture = try ToolFixture()
    let run = try await fixture.run(arguments)
    #expect(run.status == 64)
    #expect(run.lines.isEmpty)
    #expect(run.errors.count == 1)
    #expect(run.errors.first?.hasPrefix("etagere-cli: \(reason)") == true)
    let end = try #require(run.errors.first?.firstMatch(of: /\(see '(etagere-cli( [a-z]+)*) --help'\)$/)?.output.1)
    #expect(arguments.first == "got" || end.hasPrefix("etagere-cli \(arguments[0])"))
    #expect(fixture.files(below: fixture.path).isEmpty)
  }

  @Test("an argument that is not UTF-8 is refused, because it would name another resource")
  func invalidArgument() async throws {
    let run = try await ToolFixture().shell("etagere-cli get --quiet \"$(printf 'data:,\\351')\"")
    #expect(run.status == 64)
    #expect(run.errors == ["etagere-cli: argument 3 is not UTF-8 (in a URL, write %E9 for the byte E9)"])
  }

  @Test("an unknown policy is reported with the names of all policies")
  func policies() async throws {
    let run = try await ToolFixture().run(["get", "--policy", "never", "data:,a"])
    for policy in PolicyName.allCases { #expect(run.errors.first?.contains(policy.rawValue) == true) }
  }

  @Test("every value of an option is in kebab case")
  func kebabCase() throws {
    let values = PolicyName.allCases.map(\.rawValue) + ImageOutput.FormatName.allCases.map(\.rawValue)
    for value in values { #expect(value.wholeMatch(of: /[a-z0-9]+(-[a-z0-9]+)*/) != nil, "\(value)") }
    #expect(Set(values).contains("stale-while-revalidate"))
  }

  @Test("an identifier of the library is printed in kebab case")
  func identifiers() {
    #expect(Text.kebabCase("schemeHandler") == "scheme-handler")
    #expect(Text.kebabCase("invalidURL") == "invalid-url")
    #expect(Text.kebabCase("tlsFailure") == "tls-failure")
    #expect(Text.kebabCase("network") == "network")
  }

  @Test(
    "an empty path is refused, because a script with an unset variable would use the current folder",
    arguments: [
      ["get", "data:,a", "--output"], ["get", "data:,a", "--trace"], ["get", "data:,a", "--cache-dir"], ["prefetch"], ["inspect"],
      ["cache", "stats", "--cache-dir"], ["cache", "clear", "--cache-dir"], ["demo", "--report"], ["demo", "--cache-dir"],
      ["demo", "--images", "--sheet"],
    ])
  func emptyPath(_ arguments: [String]) async throws {
    let fixture = try ToolFixture()
    let run = try await fixture.run(arguments + [""])
    #expect(run.status == 64)
    #expect(run.errors.count == 1 && run.errors.first?.contains("a path cannot be empty") == true)
    #expect(fixture.files(below: fixture.path).isEmpty)
  }

  #if os(Linux)
  @Test("the cache is below HOME, or else XDG_CACHE_HOME, and never in the current folder")
  func home() async throws {
    let fixture = try ToolFixture()
    func folder(_ variables: [String: String?]) async throws -> String? {
      try await fixture.run(["cache", "stats"], environment: variables).lines.first
    }
    let home = fixture.path + "/home"
    let cache = fixture.path + "/xdg"
    #expect(try await folder(["HOME": home, "XDG_CACHE_HOME": nil]) == "folder   \(home)/.cache/etagere")
    #expect(try await folder(["HOME": home, "XDG_CACHE_HOME": "relative"]) == "folder   \(home)/.cache/etagere")
    #expect(try await folder(["HOME": home, "XDG_CACHE_HOME": cache]) == "folder   \(cache)/etagere")
    #expect(!FileManager.default.fileExists(atPath: fixture.path + "/relative"))
  }
  #endif

  @Test("--help succeeds, fits into 80 columns, and lists every exit status")
  func help() async throws {
    let run = try await ToolFixture().run(["--help"])
    #expect(run.status == 0)
    #expect(run.errors.isEmpty)
    #expect(run.lines.allSatisfy { $0.count <= 80 })
    for status in ExitStatus.allCases {
      #expect(run.lines.contains { $0.drop { $0 == " " }.hasPrefix("\(status.rawValue)  ") }, "\(status)")
    }
  }

  @Test("an exit status is 0, 1, or a value of sysexits.h")
  func statuses() {
    #expect(ExitStatus.allCases.allSatisfy { [0, 1].contains($0.rawValue) || (64...78).contains($0.rawValue) })
  }

  @Test("--version prints the version, also after a subcommand", arguments: [["--version"], ["get", "--version"]])
  func version(_ arguments: [String]) async throws {
    let run = try await ToolFixture().run(arguments)
    #expect(run.status == 0)
    #expect(run.errors.isEmpty)
    #expect(run.lines == [EtagereCommand.version])
    #expect(EtagereCommand.version.wholeMatch(of: /[0-9]+\.[0-9]+\.[0-9]+(-[a-z]+)?/) != nil)
  }

  @Test("every command has --json, --quiet and --verbose", arguments: Self.commands)
  func commonOptions(_ command: [String]) async throws {
    let run = try await ToolFixture().run(command + ["--help"])
    #expect(run.status == 0)
    let help = String(decoding: run.output, as: UTF8.self)
    for option in ["--json", "-q, --quiet", "-v, --verbose"] { #expect(help.contains("  \(option)  "), "\(option)") }
  }

  static let commands = [
    ["get"], ["prefetch"], ["inspect"], ["cache", "stats"], ["cache", "list"], ["cache", "verify"], ["cache", "remove"],
    ["cache", "clear"], ["demo"],
  ]

  @Test("a completion script is printed for each shell", arguments: ["bash", "zsh", "fish"])
  func completions(_ shell: String) async throws {
    let fixture = try ToolFixture()
    let run = try await fixture.run(["--generate-completion-script", shell])
    #expect(run.status == 0)
    #expect(run.errors.isEmpty)
    let script = String(decoding: run.output, as: UTF8.self)
    for word in ["prefetch", "verify", "stale-while-revalidate", "cache-dir", "verbose"] {
      #expect(script.contains(word), "\(word)")
    }
  }

  @Test("the script for bash completes commands, options and policies", .enabled(if: Self.hasBash))
  func bash() async throws {
    let fixture = try ToolFixture()
    let script = try await fixture.run(["--generate-completion-script", "bash"])
    try script.output.write(to: URL(filePath: fixture.path + "/etagere-cli.bash"))
    func complete(_ words: String) async throws -> Set<String> {
      let list = words.split(separator: " ").map(String.init)
      // bash passes the command, the current word and the previous one.
      let code = """
        . ./etagere-cli.bash
        COMP_WORDS=(\(words)); COMP_CWORD=\(list.count - 1); COMP_LINE='\(words)'; COMP_POINT=${#COMP_LINE}
        function=$(complete -p etagere-cli | sed -n 's/.*-F \\([^ ]*\\).*/\\1/p')
        $function etagere-cli \(list[list.count - 1]) \(list[list.count - 2])
        printf '%s\\n' "${COMPREPLY[@]}"
        """
      return Set(try await fixture.run(["-c", code], program: "/bin/bash").lines.map { $0.trimmingCharacters(in: .whitespaces) })
    }
    #expect(try await complete("etagere-cli pre") == ["prefetch"])
    #expect(try await complete("etagere-cli cache ver") == ["verify"])
    #expect(try await complete("etagere-cli get --policy stale") == ["stale-while-revalidate"])
    #expect(try await complete("etagere-cli get --ver").isSuperset(of: ["--verbose", "--version"]))
  }

  private static let hasBash = FileManager.default.isExecutableFile(atPath: "/bin/bash")
}
#endif
