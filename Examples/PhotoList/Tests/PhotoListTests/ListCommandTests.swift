import Testing

@testable import PhotoList

@Suite("The command line of PhotoList")
struct ListCommandTests {
  @Test(
    "arguments select the command",
    arguments: [
      ([], .measure(isJSON: false)), (["measure"], .measure(isJSON: false)), (["--json"], .measure(isJSON: true)),
      (["measure", "--json"], .measure(isJSON: true)), (["serve"], .serve(port: 8_059, lifetime: 30)),
      (["serve", "--lifetime", "5", "--port", "0"], .serve(port: 0, lifetime: 5)), (["--help"], .help),
      (["serve", "-h"], .help),
    ] as [([String], ListCommand)])
  func good(arguments: [String], command: ListCommand) throws {
    #expect(try ListCommand(arguments) == command)
  }

  @Test(
    "an error names the invalid argument",
    arguments: [
      (["pass"], "unknown argument 'pass'"), (["measure", "--port", "1"], "unknown argument '--port'"),
      (["serve", "--json"], "unknown argument '--json'"), (["serve", "--port"], "--port needs a number from 0 to 65535"),
      (["serve", "--port", "65536"], "--port needs a number from 0 to 65535"),
      (["serve", "--port", "-1"], "--port needs a number from 0 to 65535"),
      (["serve", "--lifetime", "soon"], "--lifetime needs a number from 0 to 31536000"),
    ])
  func bad(arguments: [String], description: String) {
    #expect(throws: ListCommand.UsageError(description: description)) { try ListCommand(arguments) }
  }

  @Test("the exit status is 64 for invalid arguments and 0 for --help")
  func status() async {
    #expect(await ListCommand.run(["pass"]) == .usage)
    #expect(await ListCommand.run(["--help"]) == .success)
  }
}
