import Testing

@testable import PhotoList

@Suite("The command line of PhotoList")
struct ListCommandTests {
  @Test(
    "is read",
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
    "names the argument that it does not know",
    arguments: [
      (["pass"], "unknown argument 'pass'"), (["measure", "--port", "1"], "unknown argument '--port'"),
      (["serve", "--json"], "unknown argument '--json'"), (["serve", "--port"], "--port takes a number from 0 to 65535"),
      (["serve", "--port", "65536"], "--port takes a number from 0 to 65535"),
      (["serve", "--port", "-1"], "--port takes a number from 0 to 65535"),
      (["serve", "--lifetime", "soon"], "--lifetime takes a number from 0 to 31536000"),
    ])
  func bad(arguments: [String], description: String) {
    #expect(throws: ListCommand.UsageError(description: description)) { try ListCommand(arguments) }
  }

  @Test("ends with status 64 for wrong arguments, and with 0 for --help")
  func status() async {
    #expect(await ListCommand.run(["pass"]) == .usage)
    #expect(await ListCommand.run(["--help"]) == .success)
  }
}
