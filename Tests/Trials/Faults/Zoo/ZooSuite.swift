#if Service
import CacheCore
import Foundation
import ImageService

/// Files that attack decoders, sent to a service process with several operations.
struct ZooSuite {
  /// The number of requests at a time.
  private static let lanes = 6
  /// The memory that the service may retain after all requests: its cache of results, and what its allocator does not give back.
  private static let growth = 256 << 20
  /// The input that is also the source of the warm hits.
  private static let good = "good-jpeg"

  private let trial: Trial

  init(_ trial: Trial) { self.trial = trial }

  func run() async throws -> [String] {
    let all = try ZooInput.all(seed: trial.seed)
    let inputs = trial.isQuick ? ZooInput.some(of: all, seed: trial.seed) : all
    trial.report("\(grouped(inputs.count)) of \(grouped(all.count)) inputs are made")
    try write(inputs + all.filter { $0.name == Self.good })
    let hexadecimal = (0..<32).map { _ in String(UInt8.random(in: 0x10...0xFF), radix: 16) }.joined()
    let key = try SigningKey(hexadecimal: hexadecimal)
    let (program, folder, arguments) = (Self.program, trial.folder, try arguments)
    let warm = key.path(for: "zoo/\(Self.good)", operations: "width=30,format=png")
    let run = try await ZooRun(lanes: Self.lanes, report: trial.report) {
      try await ZooSession(ZooService(program, in: folder, key: hexadecimal, arguments: arguments), warm: warm)
    }
    // The warm hits without other requests.
    try await Task.sleep(for: .seconds(trial.isQuick ? 1 : 3))
    try await run.run(ZooRequest.all(inputs, count: trial.isQuick ? 1 : 2, key: key))
    let end = try await run.finish(key.path(for: "zoo/\(Self.good)", operations: "width=31,format=png"))
    let report = ZooReport(run: run, inputs: inputs, end: end)
    let defects = report.defects(growth: Self.growth)
    guard defects.isEmpty else {
      let lines = report.lines + ["\(defects.count) defects:"] + defects
      throw FailedCheck(lines.joined(separator: "\n    "))
    }
    return report.lines
  }

  /// The tool, which is built into the folder of this program.
  private static var program: String {
    URL(filePath: Child.program).deletingLastPathComponent().appending(path: "etagere-cli").path
  }

  /// The limits of the service, and worker processes for the codecs if the tool has them.
  private var arguments: [String] {
    get throws {
      try require(FileManager.default.isExecutableFile(atPath: Self.program), "there is no tool in \(Self.program)")
      var arguments = ["--source-formats", "avif,gif,heic,jpeg,png,svg,tiff,webp", "--cache-control", "max-age=3600"]
      arguments += [
        "--timeout", "\(ZooLimits.timeout)", "--max-bytes", "\(ZooLimits.bytes)", "--max-pixels", "\(ZooLimits.pixels)",
      ]
      arguments += ["--max-side", "\(ZooLimits.side)", "--memory", "32M", "--memory-budget", "128M"]
      guard try ZooService.has("--workers", Self.program) else {
        trial.report("the tool has no worker processes")
        return arguments
      }
      return arguments + ["--workers", "\(trial.workers ?? 2)"]
    }
  }

  private func write(_ inputs: [ZooInput]) throws {
    let folder = "\(trial.folder)/sources"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for input in inputs { try input.file.write(to: URL(filePath: "\(folder)/\(input.name)")) }
  }
}

/// The results of a trial as text.
private struct ZooReport {
  let run: ZooRun
  let inputs: [ZooInput]
  let end: (memory: Int, before: Int, ending: Duration)

  var lines: [String] { [summary] + table + [hits, memory, "SIGTERM ends the service in \(Self.text(end.ending))"] }

  private var limit: Duration { .seconds(ZooLimits.timeout) }

  private var summary: String {
    let overrun = max(.zero, run.worstTime - limit)
    return "\(grouped(inputs.count)) inputs, \(grouped(run.results.count)) requests, \(run.repeated) of them sent again alone; "
      + "deaths \(run.deaths.count), codecs that do not stop \(run.endless.count), hangs \(late.count), "
      + "worst response \(Self.text(overrun)) after the limit of \(Self.text(limit))"
  }

  /// A line for each family: its inputs, the images, the problems by code, and the worst time.
  private var table: [String] {
    let families = Dictionary(grouping: run.results.values) { $0.request.input.family }
    var rows = [["family", "inputs", "images", "worst", "problems"]]
    for (family, results) in families.sorted(by: { $0.key < $1.key }) {
      var (images, codes) = (0, [String: Int]())
      for result in results {
        switch result.outcome {
        case .image: images += 1
        case .problem(let code): codes[code, default: 0] += 1
        case .invalid: codes["no valid response", default: 0] += 1
        }
      }
      let count = Set(results.map(\.request.input.name)).count
      let problems = codes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
      rows.append([family, "\(count)", "\(images)", Self.text(results.map(\.time).max() ?? .zero), problems])
    }
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      zip(row, widths).enumerated().map { column, cell in
        let (text, width) = cell
        // Numbers are aligned on the right.
        let blanks = String(repeating: " ", count: width - text.count)
        return column == 4 ? text : column == 0 ? text + blanks : blanks + text
      }.joined(separator: "  ")
    }
  }

  private var hits: String {
    let (alone, beside) = (run.notes.flatMap(\.alone), run.notes.flatMap(\.beside))
    return "warm hits: p99 \(Self.percentile(alone)) of \(grouped(alone.count)) alone, "
      + "\(Self.percentile(beside)) of \(grouped(beside.count)) beside the inputs; wrong \(wrongHits.count)"
  }

  private var memory: String {
    #if os(Linux)
    let (peak, children) = (run.notes.map(\.peak).max() ?? 0, run.notes.map(\.childPeak).max() ?? 0)
    let count = run.notes.map(\.mostChildren).max() ?? 0
    let codecs = run.codecFailures.sorted { $0.key < $1.key }.map { ", \($0.key) \($0.value)" }.joined()
    return
      "memory of the service: \(Self.size(end.before)) before, \(Self.size(peak)) at its peak, \(Self.size(end.memory)) after; "
      + "of at most \(count) worker processes: \(Self.size(children)) at their peak\(codecs.isEmpty ? "" : "; codecs ended\(codecs)")"
    #else
    return "memory: not measured on this system"
    #endif
  }

  private var wrongHits: [String] { run.notes.flatMap(\.wrongHits) }

  private var late: [ZooResult] { run.results.values.filter { $0.isLate } }

  /// The guarantees that do not hold.
  func defects(growth: Int) -> [String] {
    let results = run.results.values.sorted { $0.request.name < $1.request.name }
    var defects = run.deaths.map { "ends the service: \($0)" } + run.endless.sorted().map { "its codec does not stop: \($0)" }
    for result in results {
      // A lost response is reported as the end of the service.
      if let defect = result.defect, !result.isLost || run.deaths.isEmpty { defects.append("\(result.request.name): \(defect)") }
      if result.isLate { defects.append("\(result.request.name): a response after \(Self.text(result.time))") }
    }
    defects += Set(wrongHits).sorted().map { "a warm hit: \($0)" }
    if end.memory - end.before > growth {
      defects.append("the service retains \(Self.size(end.memory - end.before)), and the limit is \(Self.size(growth))")
    }
    return defects
  }

  private static func text(_ time: Duration) -> String { "\(Int((time / .milliseconds(1)).rounded())) ms" }

  private static func size(_ bytes: Int) -> String { "\(bytes >> 20) MiB" }

  private static func percentile(_ times: [Duration]) -> String {
    guard !times.isEmpty else { return "-" }
    let time = times.sorted()[min(times.count - 1, times.count * 99 / 100)]
    return "\((time / .milliseconds(1) * 10).rounded() / 10) ms"
  }
}
#endif
