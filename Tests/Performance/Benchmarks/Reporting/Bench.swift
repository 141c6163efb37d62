import Foundation

/// The settings of a run, and the means that its scenarios share: child processes and files that nginx serves.
struct Bench {
  let settings: Settings
  let child: ChildProcess

  /// Returns the URL at which nginx serves a file of its root folder.
  func address(_ file: String) throws -> String {
    guard let origin = settings.origin else { throw BenchmarkFailure("this scenario needs --origin and --root") }
    return "\(origin)/\(file)"
  }

  /// Writes a file of `bytes` bytes to nginx's root folder.
  func serve(_ file: String, bytes: Int) throws {
    guard let root = settings.root else { throw BenchmarkFailure("this scenario needs --origin and --root") }
    let file = root.appending(path: file)
    try Pattern.write(bytes, to: file)
    // nginx's workers can run as another user.
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
  }

  /// Runs the job of every key once per round, so that a temporary load of the machine affects all keys.
  func rounds<Key: Hashable & Sendable, Work: Job>(
    _ keys: [Key], count: Int, limit: Duration = .seconds(120), _ job: (Key) throws -> Work
  ) async throws -> [Key: [Measurement]] {
    var measurements: [Key: [Measurement]] = [:]
    for round in 0..<count {
      // Every second round runs in reverse order, so that a steady slowdown or speedup affects all keys equally.
      for key in round.isMultiple(of: 2) ? keys : keys.reversed() {
        settings.progress("round \(round + 1) of \(count): \(Work.name)")
        measurements[key, default: []].append(try await child.run(job(key), limit: limit))
      }
    }
    return measurements
  }
}

/// The options and scenarios of the command line.
struct Settings {
  var scenarios: [Scenario] = []
  var origin: String?
  var root: URL?
  /// The port of the Redis server.
  var redis: Int?
  var json: URL?
  var rounds: Int?
  /// The versions of the compiler and of the peers, by name. They go into the JSON file.
  var versions: [String: String] = [:]
  var isHuge = false
  var isQuick = false
  var isQuiet = true

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value(of option: String) throws -> String {
      guard let value = rest.popFirst() else { throw BenchmarkFailure("\(option) needs a value") }
      return value
    }
    while let argument = rest.popFirst() {
      switch argument {
      case "--origin": origin = try value(of: argument)
      case "--root": root = URL(filePath: try value(of: argument), directoryHint: .isDirectory)
      case "--redis": redis = Int(try value(of: argument))
      case "--json": json = URL(filePath: try value(of: argument))
      case "--rounds":
        guard let count = Int(try value(of: argument)), (1...1_000).contains(count) else {
          throw BenchmarkFailure("--rounds needs a number from 1 to 1000")
        }
        rounds = count
      case "--version":
        let parts = try value(of: argument).split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2 else { throw BenchmarkFailure("--version needs NAME=VERSION") }
        versions[parts[0]] = parts[1]
      case "--huge": isHuge = true
      case "--quick": isQuick = true
      case "--progress": isQuiet = false
      default:
        guard let scenario = Scenario(rawValue: argument) else {
          throw BenchmarkFailure(
            "unknown scenario '\(argument)'; known scenarios: \(Scenario.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        if !scenarios.contains(scenario) { scenarios.append(scenario) }
      }
    }
    if scenarios.isEmpty { scenarios = Scenario.allCases }
  }

  /// Shows the current step on standard error, unless the run is quiet.
  func progress(_ what: String) {
    guard !isQuiet else { return }
    FileHandle.standardError.write(Data("\r\u{1B}[K\(what)".utf8))
  }

  func endProgress() {
    guard !isQuiet else { return }
    FileHandle.standardError.write(Data("\r\u{1B}[K".utf8))
  }
}

/// The scenarios, in the order in which they run.
enum Scenario: String, CaseIterable {
  #if Origin
  case small, large, waiters, storm, cancelled, link, ranges
  #endif
  #if AsyncHTTP
  case stale, screen
  #endif
  #if VIPS && os(Linux)
  case images
  case imagesVariants = "images-variants"
  #endif
  #if Metrics
  case telemetry
  #endif
  #if Server
  case parsing
  #endif
  case deciding, disk, facade, memory, ratios
  #if VIPS && Origin && os(Linux)
  case imagesStorm = "images-storm"
  #endif
  #if Redis
  case redis
  #endif
  #if Redis && Origin && AsyncHTTP
  case fleet
  #endif

  func run(_ bench: Bench) async throws -> ScenarioReport {
    switch self {
    #if Origin
    case .small: try await SmallScenario(bench: bench).run()
    case .large: try await LargeScenario(bench: bench).run()
    case .waiters: try await WaitersScenario(bench: bench).run()
    case .storm: try await StormScenario(bench: bench).run()
    case .cancelled: try await CancelledScenario(bench: bench).run()
    case .link: try await LinkScenario(bench: bench).run()
    case .ranges: try await RangesScenario(bench: bench).run()
    #endif
    #if AsyncHTTP
    case .stale: try await StaleScenario(bench: bench).run()
    case .screen: try await ScreenScenario(bench: bench).run()
    #endif
    #if VIPS && os(Linux)
    case .images: try await ImagesScenario(bench: bench).run()
    case .imagesVariants: try await VariantsScenario(bench: bench).run()
    #endif
    #if Metrics
    case .telemetry: try await TelemetryScenario(bench: bench).run()
    #endif
    #if Server
    case .parsing: try await ParsingScenario(bench: bench).run()
    #endif
    case .deciding: try await DecidingScenario(bench: bench).run()
    case .disk: try await DiskScenario(bench: bench).run()
    case .facade: try await FacadeScenario(bench: bench).run()
    case .memory: try await MemoryScenario(bench: bench).run()
    case .ratios: try await RatiosScenario().run()
    #if VIPS && Origin && os(Linux)
    case .imagesStorm: try await ImagesStormScenario(bench: bench).run()
    #endif
    #if Redis
    case .redis: try await RedisScenario(bench: bench).run()
    #endif
    #if Redis && Origin && AsyncHTTP
    case .fleet: try await FleetScenario(bench: bench).run()
    #endif
    }
  }
}
