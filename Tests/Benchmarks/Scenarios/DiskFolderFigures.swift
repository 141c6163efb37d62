/// What the rounds with a large folder have measured, as lines and goals.
struct DiskFolderFigures {
  private let measurements: [Measurement]

  init(_ measurements: [Measurement]) { self.measurements = measurements }

  private func milliseconds(_ quantity: Measurement.Quantity) -> [Double] {
    measurements.compactMap { $0[quantity].isEmpty ? nil : Sample.median($0[quantity]) * 1e3 }
  }

  private func ratios(_ one: Measurement.Quantity, _ other: Measurement.Quantity) -> [Double] {
    zip(milliseconds(one), milliseconds(other)).map { $0 / $1 }
  }

  /// Adds what there is to a report.
  func add(to report: inout ScenarioReport, trimmed: Int) {
    for (name, quantity) in [
      ("the first answer", Measurement.Quantity.firstAnswer), ("the whole index", .wholeIndex), ("a list", .list),
      ("readdir and stat", .rawList), ("\(trimmed) trimmed", .own), ("\(trimmed) unlinks", .raw), ("a load", .called),
      ("a load while trimming", .meanwhile),
    ] {
      var row = ScenarioReport.Row(name: name)
      row.figures = [Figure("each", .milliseconds, milliseconds(quantity))].compactMap(\.self)
      report.rows.append(row)
    }
    guard !milliseconds(.firstAnswer).isEmpty else { return }
    report.goals += [
      Goal("first answer of the folder", Sample.median(milliseconds(.firstAnswer)), .atMost(1), .milliseconds),
      Goal("its whole index", Sample.median(milliseconds(.wholeIndex)), .atMost(100), .milliseconds),
      Goal("trimming against bare unlinks", Sample.median(ratios(.own, .raw)), .atMost(1.5)),
      Goal("a load while trimming, against its usual time", Sample.median(ratios(.meanwhile, .called)), .atMost(2)),
    ]
  }
}
