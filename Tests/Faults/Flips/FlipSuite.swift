import Foundation

/// Damages a filled folder in every way, 100,000 times, in a process of its own: so that a trap is told with the damage that led
/// to it.
struct FlipSuite {
  private let trial: Trial

  init(_ trial: Trial) { self.trial = trial }

  func run() throws -> [String] {
    let child = try Child([
      "child", "flips", trial.folder + "/flips", String(trial.seed), String(trial.isQuick ? 4_000 : 100_000),
    ])
    let told = child.rest()
    let end = child.end(kills: false)
    let last = told.last { $0.hasPrefix("at ") } ?? "at its beginning"
    for line in told where line.hasPrefix("failed ") { throw BrokenPromise("\(last): \(line.dropFirst(7))") }
    try require(end == .exited(0), "the process that reads damaged files has ended: \(end), soon after it was \(last)")
    return told.filter { !$0.hasPrefix("at ") }
  }
}
