#if Redis && Origin
import CacheCore
import Foundation

/// Four processes that share a Redis server, which is disturbed in every second phase.
struct RedisSuite {
  private static let processes = 4

  private let trial: Trial
  private let clock = SystemClock()
  private let phases: Int
  private let phase: Duration

  init(_ trial: Trial) {
    self.trial = trial
    let seconds = trial.seconds ?? (trial.isQuick ? 16 : 600)
    let length = min(15, max(2, seconds / 4))
    phases = max(2, seconds / length / 2 * 2)
    phase = .seconds(length)
  }

  func run() async throws -> [String] {
    var server = try await DisturbedServer(seed: trial.seed)
    defer { server.stop() }
    let versions = try SharedVersions(path: trial.folder + "/versions")
    var processes: [FleetProcess] = []
    for number in 1...Self.processes {
      processes.append(
        FleetProcess(
          number,
          try Child([
            "child", "redis", "\(number)", "\(trial.seed)", "\(try server.url)", trial.folder, "\(phases)",
            "\(Int(phase / .milliseconds(1)))",
          ])))
    }
    do {
      for process in processes { try process.waitUntilReady() }
      versions.start = clock.uptime
      for index in 0..<phases {
        trial.report("phase \(index + 1) of \(phases): \(Self.isDisturbed(index) ? "disturbed" : "calm")")
        let end = versions.start + phase * (index + 1)
        if Self.isDisturbed(index) { try await disturb(&server, processes, until: end) }
        try await wait(until: end, processes)
      }
      for process in processes { try process.waitUntilDone() }
    } catch {
      throw FailedCheck("\(error); disturbances: \(Self.text(server.counts))")
    }
    return try findings(processes, server.counts)
  }

  private static func isDisturbed(_ phase: Int) -> Bool { phase % 2 == 1 }

  private func disturb(_ server: inout DisturbedServer, _ processes: [FleetProcess], until end: Duration) async throws {
    while true {
      let interval = server.interval()
      guard clock.uptime + interval < end else { return }
      try await wait(until: clock.uptime + interval, processes)
      let (disturbance, time) = server.next()
      trial.report("\(disturbance.rawValue) \(Int(time / .milliseconds(1))) ms, at \(clock.uptime / .seconds(1))")
      try await server.run(disturbance, for: min(time, max(.zero, end - clock.uptime)))
    }
  }

  /// Waits, and ends the trial at the first failure of a process.
  private func wait(until end: Duration, _ processes: [FleetProcess]) async throws {
    while true {
      for process in processes { try process.poll() }
      let rest = end - clock.uptime
      guard rest > .zero else { return }
      try await clock.sleep(for: min(rest, .milliseconds(100)))
    }
  }

  // MARK: Findings

  private func findings(_ processes: [FleetProcess], _ disturbances: [Disturbance: Int]) throws -> [String] {
    let counts = processes.reduce(into: [String: Int]()) { $0.merge($1.counts) { $0 + $1 } }
    let count: (String) -> Int = { counts[$0, default: 0] }
    for name in ["memory", "disk", "revalidated", "network", "cancelled", "purges", "server: hits", "server: writes"] {
      try require(count(name) > 0, "the trial did not reach what it tests: \(name) 0")
    }
    // A short run has no purge with a certain result.
    if !trial.isQuick { try require(count("certainly purged") > 0, "the trial did not reach what it tests: certainly purged 0") }
    let text: (String) -> String = { "\($0) \(grouped(count($0)))" }
    let failures = counts.filter { $0.key.hasPrefix("purges that failed") }.sorted { $0.key < $1.key }
    return [
      "\(Self.processes) processes, \(phases) phases of \(Int(phase / .seconds(1))) s; disturbances: \(Self.text(disturbances))",
      "operations \(grouped(count("operations"))); results: "
        + ["memory", "disk", "revalidated", "network", "cancelled"].map(text).joined(separator: ", "),
      ([text("purges"), text("purged resources"), text("certainly purged")] + failures.map { text($0.key) })
        .joined(separator: ", "),
      counts.keys.filter { $0.hasPrefix("server: ") }.sorted().map(text).joined(separator: ", "),
      "wrong 0, failed 0, hangs 0, lost waiters 0, stale after \(grouped(count("certainly purged"))) certain purges 0; "
        + "committed during a purge and read "
        + grouped(count("committed during a purge")),
      times(processes),
    ]
  }

  private static func text(_ counts: [Disturbance: Int]) -> String {
    Disturbance.allCases.map { "\($0.rawValue) \(counts[$0, default: 0])" }.joined(separator: ", ")
  }

  /// Compares each disturbed phase with the calm one before it, process by process.
  private func times(_ processes: [FleetProcess]) -> String {
    var (calm, disturbed, ratios): ([Int64], [Int64], [Double]) = ([], [], [])
    for process in processes {
      for index in 0..<phases where Self.isDisturbed(index) {
        guard let before = process.times[index - 1], let time = process.times[index] else { continue }
        calm.append(before)
        disturbed.append(time)
        ratios.append(Double(time) / Double(before))
      }
    }
    guard !ratios.isEmpty else { return "hits in memory: too few in the disturbed phases for a comparison" }
    let microseconds: ([Int64]) -> String = { "\((Double($0.sorted()[$0.count / 2]) / 100).rounded() / 10) µs" }
    let ratio = (ratios.sorted()[ratios.count / 2] * 100).rounded() / 100
    return "hits in memory: median of p99 \(microseconds(calm)) in calm phases, \(microseconds(disturbed)) in disturbed ones; "
      + "median of \(ratios.count) ratios \(ratio) (goal: at most 1.2, not checked)"
  }
}

/// A process of the fleet, as its parent sees it.
private final class FleetProcess {
  private let number: Int
  private let child: Child
  private(set) var counts: [String: Int] = [:]
  /// The 99th percentiles of hits in memory by phase, in nanoseconds.
  private(set) var times: [Int: Int64] = [:]
  private var isDone = false

  init(_ number: Int, _ child: Child) { (self.number, self.child) = (number, child) }

  func waitUntilReady() throws {
    guard let line = child.line(within: 60_000) else { throw FailedCheck("process \(number) did not start") }
    if line != "ready" { try read(line) }
  }

  /// Reads the reports so far.
  func poll() throws {
    while let line = child.line(within: 0) { try read(line) }
  }

  /// Waits for the last report. The limit is longer than that of a load and that of the recovery.
  func waitUntilDone() throws {
    while !isDone {
      guard let line = child.line(within: 150_000) else {
        throw FailedCheck("process \(number) does not end, or has ended early: \(child.end(kills: true))")
      }
      try read(line)
    }
    let end = child.end(kills: false)
    try require(end == .exited(0), "process \(number) has ended: \(end)")
  }

  private func read(_ line: String) throws {
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    switch words.first {
    case "failed": throw FailedCheck("process \(number): \(line.dropFirst(7))")
    case "done": isDone = true
    case "count" where words.count == 3: counts[words[2], default: 0] += Int(words[1]) ?? 0
    case "time" where words.count == 3: if let index = Int(words[1]) { times[index] = Int64(words[2]) }
    default: break
    }
  }
}
#endif
