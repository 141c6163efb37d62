/// The settings from the command line.
struct Settings {
  var suites: [Suite] = []
  var seed: UInt64 = 1
  var isQuick = false

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--quick": isQuick = true
      case "--seed":
        guard let number = rest.popFirst().flatMap({ UInt64($0) }) else { throw FailedCheck("--seed takes a number") }
        seed = number
      default:
        guard let suite = Suite(rawValue: argument) else {
          throw FailedCheck("unknown suite '\(argument)', not one of \(Suite.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        if !suites.contains(suite) { suites.append(suite) }
      }
    }
    if suites.isEmpty { suites = Suite.allCases }
  }
}

/// The parameters of one run: the seed of its random choices, its length, and its folder.
struct Trial: Sendable {
  var seed: UInt64
  var isQuick: Bool
  var folder: String
}

/// The suites of trials.
enum Suite: String, CaseIterable {
  case kill, flips, environment, hammer, model

  /// - Returns: Descriptions of what was done and how often.
  func run(_ trial: Trial) async throws -> [String] {
    switch self {
    case .kill:
      var suite = KillSuite(trial)
      return try await suite.run()
    case .flips: return try FlipSuite(trial).run()
    case .environment: return try EnvironmentSuite(trial).run()
    case .hammer: return try await HammerSuite(trial).run()
    case .model: return try await ModelSuite(trial).run()
    }
  }
}
