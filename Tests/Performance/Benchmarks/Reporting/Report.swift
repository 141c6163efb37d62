import Foundation

/// The results of a run, as written to the JSON file.
struct Report: Encodable {
  /// The kind of machine. It has no host name, so that a report can be published.
  struct Machine: Encodable {
    let system: String
    let architecture: String
    let processors: Int
    /// The physical memory in GiB, rounded up.
    let memory: Int

    init(_ process: ProcessInfo = .processInfo) {
      system = process.operatingSystemVersionString
      #if arch(x86_64)
      architecture = "x86_64"
      #elseif arch(arm64)
      architecture = "arm64"
      #else
      architecture = "another architecture"
      #endif
      processors = process.activeProcessorCount
      memory = Int((Double(process.physicalMemory) / Double(1 << 30)).rounded(.up))
    }
  }

  let date: Date
  let machine = Machine()
  /// The versions of the compiler and of the peers, by name.
  let versions: [String: String]
  var scenarios: [ScenarioReport] = []

  init(date: Date = Date(), versions: [String: String]) { (self.date, self.versions) = (date, versions) }

  var failures: [String] { scenarios.flatMap(\.failures) }

  func json() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    return try encoder.encode(self)
  }
}

/// The results of one scenario.
struct ScenarioReport: Encodable, Sendable {
  /// A row of the scenario's table: one way to do the work.
  struct Row: Encodable, Sendable {
    let name: String
    var figures: [Figure] = []
  }

  let name: String
  /// The measured work and the number of repetitions.
  let title: String
  var rows: [Row] = []
  var goals: [Goal] = []
  var remarks: [String] = []
  /// The counts and contents that are wrong.
  var failures: [String] = []

  init(_ name: String, _ title: String) { (self.name, self.title) = (name, title) }

  /// Adds the failures of measurements.
  mutating func take(failuresOf measurements: [Measurement], by subject: String) {
    failures += measurements.flatMap(\.failures).map { "\(name), \(subject): \($0)" }
  }
}

/// A measured quantity: one cell of a table.
struct Figure: Encodable, Sendable {
  enum Unit: String, Encodable, Sendable {
    case perSecond = "1/s"
    case megabytesPerSecond = "MB/s"
    case nanoseconds = "ns"
    case microseconds = "µs"
    case milliseconds = "ms"
    case seconds = "s"
    case megabytes = "MB"
    case mebibytes = "MiB"
    case ratio = "×"
    case percent = "%"
    case count = ""

    var decimals: Int {
      switch self {
      case .perSecond, .megabytesPerSecond, .count: 0
      case .nanoseconds, .microseconds, .milliseconds, .megabytes, .mebibytes, .percent: 1
      case .seconds, .ratio: 2
      }
    }
  }

  let name: String
  let unit: Unit
  let sample: Sample
  /// The divisor of a ratio: a peer or a physical limit, measured in the same run.
  let peer: String?

  init?(_ name: String, _ unit: Unit, _ values: [Double], peer: String? = nil) {
    guard let sample = Sample(values) else { return nil }
    (self.name, self.unit, self.sample, self.peer) = (name, unit, sample, peer)
  }

  /// The median, followed by the least and the greatest value if they differ.
  var text: String {
    let median = Text.decimal(sample.median, unit.decimals)
    let (low, high) = (Text.decimal(sample.low, unit.decimals), Text.decimal(sample.high, unit.decimals))
    return low == high ? median : "\(median) (\(low)–\(high))"
  }
}

/// A target for a figure. A missed goal is reported and fails nothing, because a busy machine can cause it.
struct Goal: Encodable, Sendable {
  enum Bound: Sendable {
    case atLeast(Double)
    case atMost(Double)
  }

  let what: String
  let unit: Figure.Unit
  let value: Double
  let bound: Bound

  init(_ what: String, _ value: Double, _ bound: Bound, _ unit: Figure.Unit = .ratio) {
    (self.what, self.value, self.bound, self.unit) = (what, value, bound, unit)
  }

  var isReached: Bool {
    switch bound {
    case .atLeast(let limit): value >= limit
    case .atMost(let limit): value <= limit
    }
  }

  var text: String {
    let (sign, limit) =
      switch bound {
      case .atLeast(let limit): ("≥", limit)
      case .atMost(let limit): ("≤", limit)
      }
    // With the digits of a figure, a value of 1.054 would seem to reach the goal of 1.05.
    let seen = Text.decimal(value, unit.decimals + 1)
    return
      "\(what): \(seen) \(unit.rawValue), goal \(sign) \(Text.decimal(limit, unit.decimals)), \(isReached ? "reached" : "MISSED")"
  }

  private enum CodingKeys: String, CodingKey { case what, unit, value, atLeast, atMost, isReached }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(what, forKey: .what)
    try container.encode(unit, forKey: .unit)
    try container.encode(value, forKey: .value)
    switch bound {
    case .atLeast(let limit): try container.encode(limit, forKey: .atLeast)
    case .atMost(let limit): try container.encode(limit, forKey: .atMost)
    }
    try container.encode(isReached, forKey: .isReached)
  }
}
