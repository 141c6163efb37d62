import CacheCore
import DiskStore
import Foundation

/// Two and four processes on one folder, whose size is measured continuously.
struct HammerSuite {
  private static let limit: Int64 = 12_000_000

  private let trial: Trial

  init(_ trial: Trial) { self.trial = trial }

  func run() async throws -> [String] {
    var findings: [String] = []
    for number in [2, 4] { findings.append(try await run(number, seconds: trial.isQuick ? 3 : 60)) }
    return findings
  }

  private func run(_ number: Int, seconds: Int) async throws -> String {
    let path = "\(trial.folder)/hammer-\(number)"
    let children = try (0..<number).map {
      try Child(["child", "hammer", path, String(trial.seed), String($0 + 1), String(seconds), String(Self.limit)])
    }
    let size = Measured(path + "/etagere-1/entries", limit: Self.limit, until: .seconds(seconds))
    var tallies: [String: Int] = [:]
    for child in children {
      for line in child.rest() {
        if line.hasPrefix("failed ") { throw FailedCheck("a process of \(number): \(line.dropFirst(7))") }
        let words = line.split(separator: " ")
        if words.count == 2, let count = Int(words[1]) { tallies[String(words[0]), default: 0] += count }
      }
      let end = child.end(kills: false)
      try require(end == .exited(0), "a process of \(number) has ended: \(end)")
    }
    try require(size.peak <= Self.limit / 10 * 12, "the folder reached \(size.peak) bytes, but its limit is \(Self.limit)")
    try await check(path)
    let told = ["stored", "hits", "misses", "evictions"].map { "\($0) \(grouped(tallies[$0, default: 0]))" }
    return
      "\(number) processes, \(seconds) s: \(told.joined(separator: ", ")); wrong 0; largest of \(grouped(size.count)) measured sizes: "
      + "\(size.peak * 100 / Self.limit) % of the limit; above the limit \(size.above * 100 / max(size.count, 1)) % of the time"
  }

  private func check(_ path: String) async throws {
    let cache = try DiskCache(path: path, configuration: .init(sizeLimit: Self.limit))
    let report = try await cache.verify()
    try require(report.isClean && report.newer == 0, "\(report)")
    let (total, files) = (try await cache.totalSize, Folder.size(path + "/etagere-1/entries"))
    try require(total == files, "\(total) bytes are counted, but the files have \(files)")
    try require(total <= Self.limit, "\(total) bytes are left in the end, but the limit is \(Self.limit)")
    try require(try await cache.entryCount == report.good, "the counts of all and of good entries differ")
    for key in 0..<HammerWorker.keys {
      if let entry = try await cache.entry(for: Keys.key(key)) { _ = try await Value(of: entry, for: Keys.key(key)) }
    }
    let left = Folder.files(path + "/etagere-1/tmp").map(\.path).filter { !$0.contains("/tmp/\(getpid())-") }
    try require(left.isEmpty, "left behind: \(left)")
    await cache.close()
  }
}

/// The sizes of a folder within some time.
private struct Measured {
  private(set) var peak: Int64 = 0
  private(set) var count = 0
  /// The number of sizes above the limit.
  private(set) var above = 0

  init(_ path: String, limit: Int64, until time: Duration) {
    let clock = SystemClock()
    let end = clock.uptime + time
    while clock.uptime < end {
      let size = Folder.size(path)
      peak = max(peak, size)
      count += 1
      if size > limit { above += 1 }
      // Without a pause, the measurement would take a core away from the measured processes.
      usleep(5_000)
    }
  }
}
