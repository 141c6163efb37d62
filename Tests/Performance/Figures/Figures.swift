import Foundation

/// The results of a benchmark run, as `Scripts/bench`, `Scripts/bench-gateway` and `Scripts/bench-service` write them with
/// `--json`.
struct Figures: Decodable {
  struct Machine: Decodable, Equatable {
    let system: String
    let architecture: String
    let processors: Int
    /// The physical memory in GiB.
    let memory: Int
  }

  struct Scenario: Decodable {
    let name: String
    let title: String
    let rows: [Row]
    let goals: [Goal]
    let remarks: [String]
    let failures: [String]
  }

  struct Row: Decodable {
    let name: String
    let figures: [Figure]
  }

  struct Figure: Decodable {
    let name: String
    let unit: String
    let sample: Sample
    /// The divisor of a ratio.
    let peer: String?
  }

  struct Sample: Decodable {
    let median: Double
    let low: Double
    let high: Double
    let count: Int
  }

  struct Goal: Decodable {
    let what: String
    let unit: String
    let value: Double
    let atLeast: Double?
    let atMost: Double?
    let isReached: Bool
  }

  let date: Date
  let machine: Machine
  let versions: [String: String]
  let scenarios: [Scenario]

  static func read(_ file: URL) throws -> Self {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    do {
      return try decoder.decode(Self.self, from: Data(contentsOf: file))
    } catch {
      throw PlotError("cannot read '\(file.path)': \(error)")
    }
  }
}

/// The results of all committed runs.
struct Results {
  let runs: [Figures]

  func scenario(_ name: String) throws -> Figures.Scenario {
    guard let scenario = runs.lazy.flatMap(\.scenarios).first(where: { $0.name == name }) else {
      throw PlotError("the scenario '\(name)' was not measured")
    }
    return scenario
  }

  func figure(_ key: Key) throws -> Figures.Figure {
    let rows = try scenario(key.scenario).rows
    guard let figure = rows.first(where: { $0.name == key.row })?.figures.first(where: { $0.name == key.figure }) else {
      throw PlotError("the figure '\(key)' was not measured")
    }
    return figure
  }

  /// The run that has a scenario.
  func run(of scenario: String) throws -> Figures {
    guard let run = runs.first(where: { $0.scenarios.contains { $0.name == scenario } }) else {
      throw PlotError("the scenario '\(scenario)' was not measured")
    }
    return run
  }
}

/// The source of a figure: its scenario, row and name in the JSON file.
struct Key: CustomStringConvertible {
  let scenario: String
  let row: String
  let figure: String

  init(_ scenario: String, _ row: String, _ figure: String) {
    (self.scenario, self.row, self.figure) = (scenario, row, figure)
  }

  var description: String { "\(scenario) › \(row) › \(figure)" }
}

struct PlotError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
