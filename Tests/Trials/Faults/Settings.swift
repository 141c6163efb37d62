/// The settings from the command line.
struct Settings {
  var suites: [Suite] = []
  var seed: UInt64 = 1
  var isQuick = false
  var seconds: Int?
  var isVerbose = false
  var workers: Int?
  var csv: (path: String, continues: Bool)?

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--quick": isQuick = true
      case "--seed":
        guard let number = rest.popFirst().flatMap({ UInt64($0) }) else { throw FailedCheck("--seed takes a number") }
        seed = number
      case "--seconds":
        guard let number = rest.popFirst().flatMap({ Int($0) }), number > 0 else {
          throw FailedCheck("--seconds takes a number")
        }
        seconds = number
      case "--workers":
        guard let number = rest.popFirst().flatMap({ Int($0) }), number >= 0 else {
          throw FailedCheck("--workers takes a number")
        }
        workers = number
      case "--csv", "--append":
        guard let path = rest.popFirst() else { throw FailedCheck("\(argument) takes a file") }
        csv = (path, argument == "--append")
      case "--verbose": isVerbose = true
      default:
        guard let suite = Suite(rawValue: argument), Suite.built.contains(suite) else {
          throw FailedCheck("unknown suite '\(argument)', not one of \(Suite.built.map(\.rawValue).joined(separator: ", "))")
        }
        if !suites.contains(suite) { suites.append(suite) }
      }
    }
    // A soak runs only if it is named, because it takes hours.
    if suites.isEmpty { suites = Suite.built.filter { $0 != .soak } }
  }
}

/// The parameters of one run: the seed of its random choices, its length, and its folder.
struct Trial: Sendable {
  var seed: UInt64
  var isQuick: Bool
  /// The length of a suite that runs for some time, or `nil` for its own.
  var seconds: Int?
  /// The number of worker processes of a service, or `nil` for that of the suite.
  var workers: Int?
  /// The file for the table of "soak", and whether it continues.
  var csv: (path: String, continues: Bool)?
  var folder: String
  /// Prints the progress of the run, if that is wanted.
  var report: @Sendable (String) -> Void
  /// Prints a line in any case.
  var print: @Sendable (String) -> Void
}

/// The suites of trials.
enum Suite: String, CaseIterable {
  case kill, flips, environment, hammer, model, redis, zoo, soak

  /// The suites whose traits are enabled.
  static var built: [Suite] {
    var suites = allCases
    #if !(Redis && Origin)
    suites.removeAll { $0 == .redis }
    #endif
    #if !Service
    suites.removeAll { $0 == .zoo }
    #endif
    #if !(Redis && Origin && Service && SQLite)
    suites.removeAll { $0 == .soak }
    #endif
    return suites
  }

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
    case .redis:
      #if Redis && Origin
      return try await RedisSuite(trial).run()
      #else
      throw FailedCheck("the suite 'redis' needs the trait Redis")
      #endif
    case .zoo:
      #if Service
      return try await ZooSuite(trial).run()
      #else
      throw FailedCheck("the suite 'zoo' needs the trait Service")
      #endif
    case .soak:
      #if Redis && Origin && Service && SQLite
      return try await SoakSuite(trial).run()
      #else
      throw FailedCheck("the suite 'soak' needs the traits Redis, Origin, Service and SQLite")
      #endif
    }
  }
}
