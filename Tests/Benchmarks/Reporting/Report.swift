import Foundation

/// What a run has found, as it goes into the JSON file.
struct Report: Encodable {
  let date: Date
  let system: String
  let processors: Int
  var scenarios: [ScenarioReport] = []

  init(date: Date = Date()) {
    self.date = date
    system = ProcessInfo.processInfo.operatingSystemVersionString
    processors = ProcessInfo.processInfo.activeProcessorCount
  }

  var failures: [String] { scenarios.flatMap(\.failures) }

  func json() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    return try encoder.encode(self)
  }
}

/// What one scenario has found.
struct ScenarioReport: Encodable, Sendable {
  /// One line of its table: one way to do the work.
  struct Row: Encodable, Sendable {
    let name: String
    var figures: [Figure] = []
  }

  let name: String
  /// What was done, how often.
  let title: String
  var rows: [Row] = []
  var goals: [Goal] = []
  var remarks: [String] = []
  /// Counts and contents that are not as they must be.
  var failures: [String] = []

  init(_ name: String, _ title: String) { (self.name, self.title) = (name, title) }

  /// Takes over what measuring processes found wrong.
  mutating func take(failuresOf measurements: [Measurement], by who: String) {
    failures += measurements.flatMap(\.failures).map { "\(name), \(who): \($0)" }
  }
}

/// One column's number in a line.
struct Figure: Encodable, Sendable {
  enum Unit: String, Encodable, Sendable {
    case perSecond = "1/s"
    case megabytesPerSecond = "MB/s"
    case nanoseconds = "ns"
    case microseconds = "µs"
    case milliseconds = "ms"
    case seconds = "s"
    case megabytes = "MB"
    case ratio = "×"
    case percent = "%"
    case count = ""

    var decimals: Int {
      switch self {
      case .perSecond, .megabytesPerSecond, .count: 0
      case .nanoseconds, .microseconds, .milliseconds, .megabytes, .percent: 1
      case .seconds, .ratio: 2
      }
    }
  }

  let name: String
  let unit: Unit
  let sample: Sample

  init?(_ name: String, _ unit: Unit, _ values: [Double]) {
    guard let sample = Sample(values) else { return nil }
    (self.name, self.unit, self.sample) = (name, unit, sample)
  }

  /// The median, and the spread where there is one.
  var text: String {
    let median = Text.decimal(sample.median, unit.decimals)
    let (low, high) = (Text.decimal(sample.low, unit.decimals), Text.decimal(sample.high, unit.decimals))
    return low == high ? median : "\(median) (\(low)–\(high))"
  }
}

/// A figure that is aimed at. One that is missed is told, and fails nothing: the machine may be to blame.
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
    // A goal of 1.05 that is met with 1.054 would read as met with 1.05: one digit more than the figures have.
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
