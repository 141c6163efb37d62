import Foundation

/// The generated parts of Markdown pages, by the names in their markers.
struct Blocks {
  let results: Results
  let simulations: Simulations
  let soak: Soak

  /// Returns the text for a block: `machine`, `headlines`, `missed`, `reached`, `failed`, `soak`, `scenario NAME`, or
  /// `simulation NAME` with the part of it.
  func text(_ name: String) throws -> String {
    if name.hasPrefix("simulation ") {
      return try simulations.text(name.split(separator: " ").dropFirst().map(String.init), results)
    }
    if name.hasPrefix("scenario ") { return table(try results.scenario(String(name.dropFirst("scenario ".count)))) }
    return switch name {
    case "machine": machine()
    case "headlines": try headlines()
    case "missed": goals { !$0.isReached }
    case "reached": goals(\.isReached)
    case "failed": failures()
    case "soak": try soak.table
    default: throw PlotError("there is no block '\(name)'")
    }
  }

  private func machine() -> String {
    results.runs.map { run in
      let names = run.versions.keys.sorted { ($0 == "Swift" ? "" : $0) < ($1 == "Swift" ? "" : $1) }
      let versions = names.map { "\($0) \(run.versions[$0] ?? "")" }.joined(separator: ", ")
      let script = ["gateway", "service"].first { name in run.scenarios.contains { $0.name == name } }
      let command = "Scripts/bench" + (script.map { "-\($0)" } ?? "")
      return "- `\(command)`, \(Format.date(run.date)): \(run.machine.processors) cores (\(run.machine.architecture)), "
        + "\(run.machine.memory) GiB of memory, \(run.machine.system); \(versions)."
    }
    .joined(separator: "\n")
  }

  /// The three figures of the README.
  private func headlines() throws -> String {
    func value(_ key: Key) throws -> String {
      let figure = try results.figure(key)
      return Format.value(figure.sample.median, figure.unit)
    }
    let revalidated = try value(Key("screen", "Etagere, stale and unchanged", "time"))
    let uncached = try value(Key("screen", "async-http-client, no cache", "time"))
    let hit = try value(Key("facade", "memory, synchronous", "processor time"))
    let resumed = try value(Key("link", "AsyncHTTPNetworking, one by one, third cut at 50 %, resuming", "time / minimum"))
    return """
      - **\(revalidated) instead of \(uncached)** to revalidate a screen of 50 unchanged images over 10 Mbit/s.
      - **\(hit)** of processor time for a hit in memory.
      - **\(resumed)** the link's minimum for a transfer that breaks off halfway and is resumed.
      """
  }

  private func goals(_ isIncluded: (Figures.Goal) -> Bool) -> String {
    var lines = ["| scenario | figure | goal | measured |", "| --- | --- | --- | --- |"]
    for scenario in results.runs.flatMap(\.scenarios) {
      for goal in scenario.goals where isIncluded(goal) {
        let (sign, limit) = goal.atLeast.map { ("≥", $0) } ?? ("≤", goal.atMost ?? 0)
        // A limit has its own number of digits, and the value has one more, so that it does not seem to be at the limit.
        let limitText = "\(limit)".hasSuffix(".0") ? "\(Int(limit))" : "\(limit)"
        let digits = max(Format.decimals(of: goal.unit), limitText.split(separator: ".").dropFirst().first?.count ?? 0) + 1
        let unit = goal.unit.isEmpty ? "" : " \(goal.unit)"
        lines.append(
          "| `\(scenario.name)` | \(goal.what) | \(sign) \(limitText)\(unit) | \(Format.decimal(goal.value, digits))\(unit) |")
      }
    }
    return lines.count > 2 ? lines.joined(separator: "\n") : "None."
  }

  /// The checks of counts and contents that have failed, with their numbers of times.
  private func failures() -> String {
    let failures = results.runs.flatMap(\.scenarios).flatMap(\.failures)
    let counts = Dictionary(failures.map { ($0, 1) }, uniquingKeysWith: +)
    let lines = counts.sorted { $0.key < $1.key }.map { "- \($0.key) (\($0.value) \($0.value == 1 ? "time" : "times"))." }
    return lines.isEmpty ? "All checks of counts and contents have passed." : lines.joined(separator: "\n")
  }

  private func table(_ scenario: Figures.Scenario) -> String {
    struct Column: Hashable {
      let name: String
      let unit: String
    }
    var columns: [Column] = []
    for figure in scenario.rows.flatMap(\.figures) where !columns.contains(Column(name: figure.name, unit: figure.unit)) {
      columns.append(Column(name: figure.name, unit: figure.unit))
    }
    func figure(_ row: Figures.Row, _ column: Column) -> Figures.Figure? {
      row.figures.first { $0.name == column.name && $0.unit == column.unit }
    }
    let digits = columns.map { column in
      Format.decimals(of: column.unit, values: scenario.rows.compactMap { figure($0, column)?.sample.median })
    }
    let headings = columns.map { $0.unit.isEmpty ? $0.name : "\($0.name), \($0.unit)" }
    var lines = [
      scenario.title + ".", "", "| | " + headings.joined(separator: " | ") + " |",
      "| --- |" + String(repeating: " --- |", count: columns.count),
    ]
    for row in scenario.rows {
      let cells = zip(columns, digits).map { column, digits in figure(row, column).map { Format.spread($0.sample, digits) } ?? ""
      }
      lines.append("| \(row.name) | " + cells.joined(separator: " | ") + " |")
    }
    let peers = scenario.rows.flatMap(\.figures).compactMap { figure in figure.peer.map { (figure.name, $0) } }
    var seen: [String] = []
    for (name, peer) in peers where !seen.contains("\(name): \(peer)") { seen.append("\(name): \(peer)") }
    if !seen.isEmpty { lines += ["", "Peers of the ratios: " + seen.joined(separator: "; ") + "."] }
    for remark in scenario.remarks { lines += ["", remark.prefix(1).uppercased() + remark.dropFirst() + "."] }
    return lines.joined(separator: "\n")
  }
}

/// A Markdown page with generated blocks between `<!-- figures: begin NAME -->` and `<!-- figures: end -->`.
struct Page {
  private static let begin = "<!-- figures: begin "
  private static let end = "<!-- figures: end -->"

  let text: String

  /// Returns the page with new blocks, or `nil` if it has none.
  func updated(_ blocks: Blocks) throws -> String? {
    guard text.contains(Self.begin) else { return nil }
    var lines: [Substring] = []
    var isInBlock = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix(Self.begin) {
        guard !isInBlock, line.hasSuffix(" -->") else { throw PlotError("unexpected marker '\(line)'") }
        let name = line.dropFirst(Self.begin.count).dropLast(" -->".count)
        lines += [line, "", Substring(try blocks.text(String(name))), ""]
        isInBlock = true
      } else if line == Self.end {
        guard isInBlock else { throw PlotError("unexpected marker '\(line)'") }
        lines.append(line)
        isInBlock = false
      } else if !isInBlock {
        lines.append(line)
      }
    }
    guard !isInBlock else { throw PlotError("a block has no marker '\(Self.end)'") }
    return lines.joined(separator: "\n")
  }
}
