#if Metrics
/// The instructions that telemetry adds to a hit in memory and to a view. They do not depend on the load of the machine.
struct TelemetryScenario {
  let bench: Bench

  func run() async throws -> ScenarioReport {
    let few = 2_000
    var report = ScenarioReport(
      "telemetry", "instructions of a load: (many loads - \(few) loads) / (many - \(few)), counted by callgrind")
    for form in TelemetryJob.Form.allCases {
      let many = form == .viewCold ? 6_000 : 22_000
      var bare: Double?
      for observer in TelemetryJob.Observer.allCases {
        bench.settings.progress("telemetry: \(observer.rawValue)")
        var counts: [Double] = []
        for loads in [few, many] {
          counts.append(try await bench.child.instructions(of: TelemetryJob(observer: observer, form: form, loads: loads)))
        }
        let each = (counts[1] - counts[0]) / Double(many - few)
        var row = ScenarioReport.Row(name: "\(form.rawValue), \(observer.rawValue)")
        row.figures = [Figure("instructions", .count, [each])].compactMap(\.self)
        report.rows.append(row)
        guard let base = bare else {
          bare = each
          continue
        }
        // The addresses of objects differ between runs, and with them some paths of the allocator and of hashing.
        report.goals.append(
          Goal(
            "\(form.rawValue), \(observer.rawValue): instructions, against no observer", each / base,
            .atMost(observer == .metrics ? 1.05 : 1.001)))
      }
    }
    return report
  }
}
#endif
