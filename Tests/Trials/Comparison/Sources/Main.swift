import Foundation

/// Drives each loader through each scenario and prints a table.
///
/// With `loader` as its first argument, it is the process of a loader.
@main
enum Comparison {
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    do {
      if arguments.first == "loader" {
        try await LoaderHost.run(Array(arguments.dropFirst()))
      } else {
        try await compare(arguments)
      }
    } catch {
      tell("error: \(error)")
      exit(70)
    }
  }

  #if Origin
  private static func compare(_ arguments: [String]) async throws {
    // A loader that crashes closes its pipe.
    signal(SIGPIPE, SIG_IGN)
    let settings = try Settings(arguments)
    var report = Report(system: ProcessInfo.processInfo.operatingSystemVersionString, loaders: settings.loaders)
    for scenario in settings.scenarios {
      var row = Report.Row(
        scenario: scenario, title: scenario.title, expectation: scenario.expectation, findings: [:])
      for loader in settings.loaders {
        let start = ContinuousClock.now
        let finding = try await Trial.run(scenario, with: loader)
        row.findings[loader.rawValue] = finding
        let time = (ContinuousClock.now - start).formatted(.units(allowed: [.seconds], fractionalPart: .show(length: 1)))
        tell("\(scenario.rawValue), \(loader.rawValue): \(finding.verdict.rawValue): \(finding.text) (\(time))")
      }
      report.rows.append(row)
    }
    if let path = settings.json { try report.json.write(to: URL(filePath: path)) }
    FileHandle.standardOutput.write(Data(report.markdown.utf8))
    for row in report.defects { tell("DEFECT of Etagere: \(row.title)") }
    exit(report.defects.isEmpty ? 0 : 1)
  }
  #else
  private static func compare(_ arguments: [String]) async throws {
    throw ComparisonError("build with the trait 'Origin', which has the origin of the scenarios")
  }
  #endif

  private static func tell(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }
}

/// The arguments of a run.
struct Settings {
  var loaders: [LoaderKind] = []
  var scenarios: [Scenario] = []
  var json: String?

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      if argument == "--json", let path = rest.popFirst() {
        json = path
      } else if let loader = LoaderKind(rawValue: argument) {
        loaders.append(loader)
      } else if let scenario = Scenario(rawValue: argument) {
        scenarios.append(scenario)
      } else {
        let known = LoaderKind.allCases.map(\.rawValue) + Scenario.allCases.map(\.rawValue)
        throw ComparisonError("unknown argument '\(argument)': expected --json FILE, \(known.joined(separator: ", "))")
      }
    }
    if loaders.isEmpty { loaders = LoaderKind.allCases }
    if scenarios.isEmpty { scenarios = Scenario.allCases }
  }
}
