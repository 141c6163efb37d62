/// The rows and goals of the rounds with a large folder.
struct DiskFolderFigures {
  private let measurements: [Measurement]

  init(_ measurements: [Measurement]) { self.measurements = measurements }

  private func milliseconds(_ quantity: Measurement.Quantity) -> [Double] {
    measurements.compactMap { $0[quantity].isEmpty ? nil : Sample.median($0[quantity]) * 1e3 }
  }

  private func ratios(_ one: Measurement.Quantity, _ other: Measurement.Quantity) -> [Double] {
    zip(milliseconds(one), milliseconds(other)).map { $0 / $1 }
  }

  /// Adds the rows and goals to a report.
  func add(to report: inout ScenarioReport, trimmed: Int) {
    for (name, quantity) in [
      ("open, first entry read", Measurement.Quantity.firstAnswer), ("open, whole index read", .wholeIndex),
      ("list all entries", .list), ("readdir and stat of all files", .rawList), ("trim \(trimmed) entries", .own),
      ("unlink of \(trimmed) files", .raw), ("read an entry", .called), ("read an entry while trimming", .meanwhile),
    ] {
      var row = ScenarioReport.Row(name: name)
      row.figures = [Figure("time", .milliseconds, milliseconds(quantity))].compactMap(\.self)
      report.rows.append(row)
    }
    guard !milliseconds(.firstAnswer).isEmpty else { return }
    report.goals += [
      Goal("50,000 entries: open, first entry read", Sample.median(milliseconds(.firstAnswer)), .atMost(1), .milliseconds),
      Goal("50,000 entries: open, whole index read", Sample.median(milliseconds(.wholeIndex)), .atMost(100), .milliseconds),
      Goal("trim 10,000 entries, against unlink", Sample.median(ratios(.own, .raw)), .atMost(1.5)),
      Goal("read an entry while trimming, against its usual time", Sample.median(ratios(.meanwhile, .called)), .atMost(2)),
    ]
  }
}
