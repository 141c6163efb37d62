import Foundation

/// Damages a filled folder in every way, 100,000 times. A separate process does it, so that a trap is reported with the damage
/// that caused it.
struct FlipSuite {
  private let trial: Trial

  init(_ trial: Trial) { self.trial = trial }

  func run() throws -> [String] {
    let child = try Child([
      "child", "flips", trial.folder + "/flips", String(trial.seed), String(trial.isQuick ? 4_000 : 100_000),
    ])
    let told = child.rest()
    let end = child.end(kills: false)
    let last = told.last { $0.hasPrefix("at ") } ?? "at the start"
    for line in told where line.hasPrefix("failed ") { throw FailedCheck("\(last): \(line.dropFirst(7))") }
    try require(end == .exited(0), "the process that reads damaged files has ended: \(end), last known \(last)")
    return told.filter { !$0.hasPrefix("at ") }
  }
}
