#if Server
/// The cost of the request parser and the response writer of `HTTPServing` against SwiftNIO's handlers.
struct ParsingScenario {
  let bench: Bench

  private struct Variant: Hashable, Sendable {
    let work: ParsingJob.Work
    let usesHTTPServing: Bool
  }

  func run() async throws -> ScenarioReport {
    let rounds = bench.settings.rounds ?? 5
    let repetitions = 10_000
    var report = ScenarioReport(
      "parsing",
      "\(repetitions) repetitions in a channel without a socket, \(rounds) rounds: processor time of one, median (least–most)")
    let variants = ParsingJob.Work.allCases.flatMap { work in
      [true, false].map { Variant(work: work, usesHTTPServing: $0) }
    }
    let measured = try await bench.rounds(variants, count: rounds) {
      ParsingJob(work: $0.work, usesHTTPServing: $0.usesHTTPServing, repetitions: repetitions)
    }
    for work in ParsingJob.Work.allCases {
      let serving = measured[Variant(work: work, usesHTTPServing: true)] ?? []
      let peer = measured[Variant(work: work, usesHTTPServing: false)] ?? []
      report.take(failuresOf: serving + peer, by: work.title)
      // The fastest batch of each process, because other work of the machine only adds to the time.
      let (times, peerTimes) = (Self.times(serving, repetitions), Self.times(peer, repetitions))
      var row = ScenarioReport.Row(name: work.title)
      row.figures = [
        Figure("HTTPServing", .microseconds, times), Figure("SwiftNIO", .microseconds, peerTimes),
        Figure("time / SwiftNIO", .ratio, zip(times, peerTimes).map { $0 / $1 }, peer: "SwiftNIO"),
      ].compactMap(\.self)
      report.rows.append(row)
    }
    return report
  }

  /// Returns the processor time of one repetition in microseconds, for each process.
  private static func times(_ measurements: [Measurement], _ repetitions: Int) -> [Double] {
    measurements.compactMap { $0[.processor].min() }.map { $0 * 1e6 / Double(repetitions) }
  }
}

extension ParsingJob.Work {
  fileprivate var title: String {
    switch self {
    case .get: "read a GET with 12 fields"
    case .chunks: "read a POST with 64 chunks of 1 KiB"
    case .response: "write a head with 12 fields"
    }
  }
}
#endif
