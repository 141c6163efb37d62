import CacheCore
import CacheTesting
import DiskStore
import Foundation

/// Kills a writing process at random instants with `kill -9`, repeatedly on one folder, and checks the folder after each kill.
struct KillSuite {
  private let trial: Trial
  private let path: String
  private var generator: SplitMix
  private var model = KillModel()
  private var openings: [Duration] = []
  private var killedWhileOpening = 0
  private var orphans = 0

  init(_ trial: Trial) {
    self.trial = trial
    path = trial.folder + "/kill"
    generator = SplitMix(state: trial.seed)
  }

  mutating func run() async throws -> [String] {
    let rounds = trial.isQuick ? 60 : 1_000
    try await fill()
    for round in 0..<rounds {
      do {
        try await kill(round)
      } catch {
        throw FailedCheck("round \(round): \(error)")
      }
    }
    openings.sort()
    // The median, because a single opening may have waited for the machine.
    let median = openings[openings.count / 2]
    try require(median < .seconds(2), "the median of \(openings.count) openings took \(median)")
    let tallies = ["done", "in progress", "of those, completed", "interrupted removals of all entries"]
      .map { "\($0) \(grouped(model.tallies[$0, default: 0]))" }.joined(separator: ", ")
    return [
      "\(grouped(rounds)) kills, \(grouped(killedWhileOpening)) of them before the folder was open; \(grouped(KillPlan.keys)) keys",
      "changes \(tallies)",
      "lost 0, wrong 0, partial 0; temporary files removed: \(grouped(orphans))",
      "opening and first lookup: median \(milliseconds(median)), maximum \(milliseconds(openings.last))",
    ]
  }

  private func milliseconds(_ duration: Duration?) -> String {
    "\(((duration ?? .zero) / .milliseconds(1) * 10).rounded() / 10) ms"
  }

  /// Stores every key, so that there is an index file from the first round on.
  private mutating func fill() async throws {
    let cache = try DiskCache(path: path, configuration: .init(sizeLimit: nil))
    for key in 0..<KillPlan.keys { try await store(key, UInt64(key + 1), cache) }
    await cache.close()
  }

  private mutating func store(_ key: Int, _ number: UInt64, _ cache: DiskCache) async throws {
    let value = Value(number: number, length: Value.length(&generator))
    try await cache.store(value.bytes, for: Keys.key(key), metadata: value.metadata)
    model.store(key, value)
  }

  private mutating func kill(_ round: Int) async throws {
    let evicts = KillPlan.evicts(round)
    let limit = evicts ? String(Folder.size(path + "/etagere-1/entries") / 10 * 7) : "none"
    let child = try Child(["child", "kill", path, String(trial.seed), String(round), limit])
    var told = wait(for: child)
    let end = child.end(kills: true)
    told += child.rest()
    try require(end == .killed(SIGKILL), "the process was not killed, but ended on its own: \(end); \(told.last ?? "")")
    for line in told where line.hasPrefix("failed") { throw FailedCheck(line) }
    if !told.contains("open") { killedWhileOpening += 1 }
    try model.replay(KillPlan(seed: trial.seed, round: round), done: Set(told.compactMap { Int($0) }), evicts: evicts)
    try await check(round)
  }

  /// Waits until the process has made random progress, and then for a random time.
  private mutating func wait(for child: Child) -> [String] {
    var told: [String] = []
    let lines = [0, 1, 2, 2, 2].randomElement(using: &generator) ?? 2
    let done = lines < 2 ? 0 : Int.random(in: 0..<40, using: &generator)
    while told.count < lines + done, let line = child.line(within: 20_000) { told.append(line) }
    usleep(UInt32.random(in: 0...(lines == 0 ? 20_000 : 3_000), using: &generator))
    return told
  }

  /// Opens the folder as the next process would, and checks everything in it.
  private mutating func check(_ round: Int) async throws {
    orphans += Folder.files(path + "/etagere-1/tmp").count { !$0.path.hasSuffix(".lock") }
    let clock = SystemClock()
    let start = clock.uptime
    let cache = try DiskCache(path: path, configuration: .init(sizeLimit: nil))
    _ = try await cache.entry(for: Keys.key(0))
    let taken = clock.uptime - start
    openings.append(taken)
    var found: [Int: Value] = [:]
    for key in 0..<KillPlan.keys {
      guard let entry = try await cache.entry(for: Keys.key(key)) else { continue }
      found[key] = try await Value(of: entry, for: Keys.key(key))
    }
    try model.settle(found)
    // The count waits for the background work of opening.
    let count = try await cache.entryCount
    try require(count == found.count, "\(count) entries are counted, but \(found.count) exist")
    // This process's own lock file is excluded.
    let left = Folder.files(path + "/etagere-1/tmp").map(\.path).filter { !$0.contains("/tmp/\(getpid())-") }
    try require(left.isEmpty, "temporary files of the killed process were not removed: \(left)")
    let report = try await cache.verify()
    try require(report.isClean && report.good == found.count && report.newer == 0, "a partial entry is visible: \(report)")
    try require(cache.counters.damaged == 0, "\(cache.counters.damaged) files were damaged")
    try await mend(round, found, cache)
    await cache.close()
  }

  /// Stores some missing entries, so that the folder fills again after evictions or a removal.
  private mutating func mend(_ round: Int, _ found: [Int: Value], _ cache: DiskCache) async throws {
    let missing = (0..<KillPlan.keys).filter { found[$0] == nil }
    guard missing.count > KillPlan.keys / 8 else { return }
    for (index, key) in missing.prefix(100).enumerated() {
      try await store(key, UInt64(round + 1) << 40 + UInt64(index), cache)
    }
  }
}
