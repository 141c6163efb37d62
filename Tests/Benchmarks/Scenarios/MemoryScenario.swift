/// What a memory store costs, beside a dictionary under one mutex.
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
      "keys of 60 characters, \(MemoryBed.residents) entries (stores, Zipf: \(MemoryBed.capacity)), \(rounds) rounds: one operation, median (least–most), "
        + "against a FIFO dictionary under one mutex")
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
    // Of each process the quickest batch: what else the machine had to do only ever adds.
    let (mine, theirs) = (own.compactMap { $0[.nanosecondsEach].min() }, peer.compactMap { $0[.nanosecondsEach].min() })
    let ratios = zip(mine, theirs).map { threads == 1 ? $0 / $1 : $1 / $0 }
    var row = ScenarioReport.Row(name: name)
    row.figures = [
      Figure("store", .nanoseconds, mine), Figure("dictionary", .nanoseconds, theirs),
      Figure(threads == 1 ? "time" : "throughput", .ratio, ratios),
      Figure("hits", .percent, own.flatMap { $0[.hitRatio] }.map { $0 * 100 }),
      Figure("dictionary's hits", .percent, peer.flatMap { $0[.hitRatio] }.map { $0 * 100 }),
      Figure("allocations", .count, own.flatMap { $0[.allocations] }),
    ].compactMap(\.self)
    report.rows.append(row)
    guard let goal = Self.goal(work, threads), !ratios.isEmpty else { return }
    report.goals.append(Goal("\(name), \(threads == 1 ? "time" : "throughput")", Sample.median(ratios), goal))
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
