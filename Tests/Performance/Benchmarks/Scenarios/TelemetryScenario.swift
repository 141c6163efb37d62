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
        report.goals.append(goal(form, observer, each, base))
      }
    }
    return report
  }

  /// Returns the goal of a form.
  ///
  /// - Parameters:
  ///   - each: The instructions of one load.
  ///   - base: Those of one load without an observer.
  private func goal(_ form: TelemetryJob.Form, _ observer: TelemetryJob.Observer, _ each: Double, _ base: Double) -> Goal {
    let name = "\(form.rawValue), \(observer.rawValue): instructions"
    // A hit takes little more than its report: the clock, the event, and two calls of a backend. A share of it would say less
    // than the number. The view that shows the hit is held to the share.
    if observer == .metrics, !form.isOfView { return Goal("\(name) added", each - base, .atMost(1_500), .count) }
    // Without a backend, the manager has no observer, so both runs execute the same code. The addresses of objects differ, and
    // with them some paths of the allocator, of hashing and, in a view, of the scheduling of its tasks.
    let bound = observer == .metrics ? 1.05 : form.isOfView ? 1.01 : 1.001
    return Goal("\(name), against no observer", each / base, .atMost(bound))
  }
}
#endif
