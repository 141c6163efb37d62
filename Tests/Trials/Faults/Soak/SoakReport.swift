#if Redis && Origin && Service && SQLite
import CacheCore
import Foundation

/// The table of a soak: a row for each minute, also as a line of a CSV file.
struct SoakReport {
  /// The memory, descriptors and threads of one process, sampled during a minute.
  struct Use {
    /// Bytes of memory, with those of the process's own children.
    var memory: [Int] = []
    var descriptors: [Int] = []
    var threads: [Int] = []
  }

  private static let counts: [SharedCounts.Count] = [
    .loads, .memory, .disk, .revalidated, .network, .stale, .cancelled, .purges, .failedPurges, .timedOut, .connection, .body,
    .status, .storage,
  ]

  private let counts: SharedCounts
  private let path: String?
  /// The part of the file that this run writes.
  private var part = 1
  private var minute: Int
  private var uses: [SoakMember: Use] = [:]
  private var lastHits: [UInt64]
  private var lastCounts: [SharedCounts.Count: Int] = [:]
  /// The medians of each minute of this run.
  private var medians: [[SoakMember: (memory: Int, descriptors: Int)]] = []

  /// - Parameter csv: The file and whether it continues. Its parts and minutes then continue, too.
  init(_ counts: SharedCounts, csv: (path: String, continues: Bool)?) throws {
    self.counts = counts
    path = csv?.path
    (minute, lastHits) = (0, counts.hits)
    guard let csv else { return }
    let old = csv.continues ? (try? String(contentsOfFile: csv.path, encoding: .utf8)) ?? "" : ""
    let lines = old.split(separator: "\n")
    if let last = lines.last, lines.count > 1 {
      let cells = last.split(separator: ",", omittingEmptySubsequences: false)
      guard lines[0] == Self.columns.joined(separator: ","), cells.count > 1, let lastPart = Int(cells[0]),
        let lastMinute = Int(cells[1])
      else { throw FailedCheck("'\(csv.path)' is not a table of this version of Scripts/soak") }
      (part, minute) = (lastPart + 1, lastMinute)
    } else {
      try Data((Self.columns.joined(separator: ",") + "\n").utf8).write(to: URL(filePath: csv.path))
    }
  }

  // MARK: Samples

  mutating func add(_ use: ProcessUse, _ member: SoakMember) {
    uses[member, default: Use()].memory.append(use.memory + use.childMemory)
    uses[member, default: Use()].descriptors.append(use.descriptors)
    uses[member, default: Use()].threads.append(use.threads)
  }

  private static func median(_ numbers: [Int]) -> Int? { numbers.isEmpty ? nil : numbers.sorted()[numbers.count / 2] }

  // MARK: Rows

  static let columns =
    ["part", "minute"] + SoakMember.allCases.map { "\($0.name)_mb" } + SoakMember.lasting.map { "\($0.name)_descriptors" }
    + SoakMember.lasting.map { "\($0.name)_threads" } + ["disk_mb"] + counts.map { "\($0)" }
    + ["wrong", "unexplained", "hung", "lost", "stops", "kills", "restarts", "p50_us", "p99_us", "p999_us"]

  /// Ends a minute.
  ///
  /// - Returns: The lines to print.
  mutating func row(disk: Int64, _ disturbances: (stops: Int, kills: Int, restarts: Int)) throws -> [String] {
    minute += 1
    let hits = counts.hits
    let new = zip(hits, lastHits).map { $0 - $1 }
    lastHits = hits
    let text: (Int?) -> String = { $0.map { "\($0)" } ?? "" }
    var cells = ["\(part)", "\(minute)"]
    cells += SoakMember.allCases.map { member in
      Self.median(uses[member]?.memory ?? []).map { Self.decimal(Double($0) / 1_048_576) } ?? ""
    }
    cells += SoakMember.lasting.map { text(Self.median(uses[$0]?.descriptors ?? [])) }
    cells += SoakMember.lasting.map { text(Self.median(uses[$0]?.threads ?? [])) }
    cells.append(Self.decimal(Double(disk) / 1_048_576))
    for count in Self.counts + [.wrong, .unexplained, .hung, .lost] {
      let total = counts.total(count)
      cells.append("\(total - lastCounts[count, default: 0])")
      lastCounts[count] = total
    }
    cells += ["\(disturbances.stops)", "\(disturbances.kills)", "\(disturbances.restarts)"]
    cells += [0.5, 0.99, 0.999].map { SharedCounts.percentile($0, of: new).map(Self.decimal) ?? "" }
    medians.append(
      uses.compactMapValues { use in
        guard let memory = Self.median(use.memory), let descriptors = Self.median(use.descriptors) else { return nil }
        return (memory, descriptors)
      })
    uses = [:]
    if let path {
      let file = try FileHandle(forWritingTo: URL(filePath: path))
      defer { try? file.close() }
      _ = try file.seekToEnd()
      try file.write(contentsOf: Data((cells.joined(separator: ",") + "\n").utf8))
    }
    return lines(cells)
  }

  // MARK: Goals

  /// The longest growth of memory and descriptors from the second ten minutes to the last ten.
  private static let growth = 0.05
  /// The minutes of the shortest run whose growth is compared.
  private static let comparedMinutes = 30

  /// Compares the second ten minutes of this run with its last ten.
  ///
  /// - Returns: A line for each goal that was missed, a line that says that none was, or nothing after a short run.
  var goals: [String] {
    guard medians.count >= Self.comparedMinutes else { return [] }
    let (early, late) = (medians.dropFirst(10).prefix(10), medians.suffix(10))
    var missed: [String] = []
    for member in SoakMember.lasting {
      func compare(_ name: String, _ value: ((memory: Int, descriptors: Int)) -> Double) {
        func median(_ rows: ArraySlice<[SoakMember: (memory: Int, descriptors: Int)]>) -> Double {
          let values = rows.compactMap { $0[member].map(value) }.sorted()
          return values.isEmpty ? 0 : (values[(values.count - 1) / 2] + values[values.count / 2]) / 2
        }
        let (before, after) = (median(early), median(late))
        guard before > 0, after > before * (1 + Self.growth) else { return }
        missed.append(
          "missed goal: \(name) of \(member.name) grows from \(Self.decimal(before)) in the second ten minutes to "
            + "\(Self.decimal(after)) in the last ten, by more than 5 %")
      }
      compare("memory in MB") { Double($0.memory) / 1_048_576 }
      compare("descriptors") { Double($0.descriptors) }
    }
    return missed.isEmpty ? ["goals: memory and descriptors grow by at most 5 %"] : missed
  }

  private static func decimal(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

  /// Returns the row with aligned columns, and the heading before every thirtieth one.
  private func lines(_ cells: [String]) -> [String] {
    func value(_ name: String) -> String { Self.columns.firstIndex(of: name).map { cells[$0] } ?? "" }
    func sum(_ names: [String]) -> String { "\(names.compactMap { Int(value($0)) }.reduce(0, +))" }
    func group(_ names: [String]) -> String { names.map { value($0).isEmpty ? "-" : value($0) }.joined(separator: "/") }
    let all = SoakMember.allCases.map(\.name)
    let lasting = SoakMember.lasting.map(\.name)
    let columns: [(heading: String, value: String, width: Int)] = [
      ("min", value("minute"), 4), ("MB: \(all.joined(separator: "/"))", group(all.map { "\($0)_mb" }), 50),
      ("descriptors", group(lasting.map { "\($0)_descriptors" }), 12), ("threads", group(lasting.map { "\($0)_threads" }), 10),
      ("disk MB", value("disk_mb"), 8), ("loads", value("loads"), 7),
      ("failed", sum(["timedOut", "connection", "body", "status", "storage"]), 7), ("purges", value("purges"), 7),
      ("wrong", value("wrong"), 6), ("unexplained", value("unexplained"), 11),
      ("hung", value("hung"), 5), ("lost", value("lost"), 5),
      ("stop/kill/restart", group(["stops", "kills", "restarts"]), 17),
      ("p50/p99/p99.9 µs", group(["p50_us", "p99_us", "p999_us"]), 20),
    ]
    func line(_ text: (Int) -> String) -> String {
      columns.indices.map { index in
        let cell = text(index)
        return String(repeating: " ", count: max(0, columns[index].width - cell.count)) + cell
      }.joined(separator: " ")
    }
    return (medians.count % 30 == 1 ? [line { columns[$0].heading }] : []) + [line { columns[$0].value }]
  }
}
#endif
