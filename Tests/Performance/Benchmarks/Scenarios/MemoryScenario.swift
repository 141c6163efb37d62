/// The cost of the memory store against a dictionary under one mutex.
struct MemoryScenario {
  let bench: Bench

  private struct Way: Hashable, Sendable {
    let work: MemoryWork
    let threads: Int
    let isOwn: Bool
  }

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 5
    var report = ScenarioReport(
      "memory",
      "keys of 60 characters, \(MemoryFixture.residents) entries (new, evicting and Zipf: \(MemoryFixture.capacity)), \(rounds) rounds: "
        + "one operation against a FIFO dictionary under one mutex, median (least–most)")
    let works = MemoryWork.allCases.map { ($0, 1) } + [(.hitWithReadyKey, 2), (.hitFromString, 2), (.zipf, 2)]
    let ways = works.flatMap { work, threads in [true, false].map { Way(work: work, threads: threads, isOwn: $0) } }
    let measured = try await bench.rounds(ways, count: rounds) {
      MemoryJob(work: $0.work, isOwn: $0.isOwn, threads: $0.threads)
    }
    for (work, threads) in works {
      let own = measured[Way(work: work, threads: threads, isOwn: true)] ?? []
      let peer = measured[Way(work: work, threads: threads, isOwn: false)] ?? []
      let name = threads == 1 ? work.rawValue : "\(work.rawValue), \(threads) threads"
      report.take(failuresOf: own + peer, by: name)
      add(name, work, threads, own, peer, to: &report)
    }
    return report
  }

  private func add(
    _ name: String, _ work: MemoryWork, _ threads: Int, _ own: [Measurement], _ peer: [Measurement],
    to report: inout ScenarioReport
  ) {
    // The fastest batch of each process, because other work of the machine only adds to the time.
    let (mine, theirs) = (own.compactMap { $0[.nanosecondsEach].min() }, peer.compactMap { $0[.nanosecondsEach].min() })
    let ratios = zip(mine, theirs).map { threads == 1 ? $0 / $1 : $1 / $0 }
    var row = ScenarioReport.Row(name: name)
    row.figures = [
      Figure("MemoryCache", .nanoseconds, mine), Figure("dictionary", .nanoseconds, theirs),
      Figure(threads == 1 ? "time / dictionary" : "throughput / dictionary", .ratio, ratios, peer: "FIFO dictionary, one mutex"),
      Figure("hits", .percent, own.flatMap { $0[.hitRatio] }.map { $0 * 100 }),
      Figure("dictionary's hits", .percent, peer.flatMap { $0[.hitRatio] }.map { $0 * 100 }),
      Figure("allocations", .count, own.flatMap { $0[.allocations] }),
    ].compactMap(\.self)
    report.rows.append(row)
    guard let goal = Self.goal(work, threads), !ratios.isEmpty else { return }
    report.goals.append(
      Goal("\(name): \(threads == 1 ? "time" : "throughput"), against the dictionary", Sample.median(ratios), goal))
  }

  private static func goal(_ work: MemoryWork, _ threads: Int) -> Goal.Bound? {
    switch (work, threads) {
    case (.hitWithReadyKey, 1): .atMost(0.4)
    case (.hitFromString, 1): .atMost(0.9)
    case (.set, 1), (.setAnew, 1): .atMost(1.1)
    case (.setEvicting, 1): .atMost(1)
    case (.hitWithReadyKey, 2): .atLeast(2.5)
    default: nil
    }
  }
}
