import ArgumentParser
import Etagere
import Foundation

/// The report of a run's progress. On a terminal it is one line that is updated. Otherwise each image that was written gets a
/// line. Errors always get a line.
actor ProgressReport {
  private let total: Int
  private let isTerminal: Bool
  private let say: @Sendable (String) -> Void
  private let clock = SystemClock()
  private let begun: Duration

  /// - Parameter say: Prints a text, which contains its line ends.
  init(
    total: Int, isTerminal: Bool = isatty(STDERR_FILENO) == 1,
    say: @escaping @Sendable (String) -> Void = { try? FileHandle.standardError.write(contentsOf: Data($0.utf8)) }
  ) {
    self.total = total
    self.isTerminal = isTerminal
    self.say = say
    begun = clock.uptime
  }

  static func complain(_ line: String) {
    try? FileHandle.standardError.write(contentsOf: Data("thumbnails: \(line)\n".utf8))
  }

  func finished(_ image: SourceImage, _ outcome: Outcome, _ summary: Summary) {
    switch outcome {
    case .made: line("made \(image.name)", always: false)
    case .restored: line("written again \(image.name)", always: false)
    case .unchanged, .cancelled: break
    case .unconfirmed(let error): line("not confirmed \(image.name): \(Self.reason(error))", always: true)
    case .failed(let error): line("failed \(image.address): \(Self.reason(error))", always: true)
    }
    guard isTerminal else { return }
    let width = 30
    let full = total == 0 ? width : summary.done * width / total
    let bar = String(repeating: "#", count: full) + String(repeating: "-", count: width - full)
    say("\r\u{1B}[K[\(bar)] \(summary.done)/\(total)  \(summary.made) made, \(summary.failed) failed")
  }

  func end(_ summary: Summary) {
    let seconds = String(format: "%.1f", (clock.uptime - begun) / .seconds(1))
    line("\(summary.description(of: total)), \(seconds) s", always: true)
  }

  /// Returns the description of an error without its address, which the line contains already.
  private static func reason(_ error: CacheError) -> String {
    var error = error
    error.url = nil
    return error.description
  }

  /// - Parameter always: Whether to print the line on a terminal too, which has a progress bar.
  private func line(_ text: String, always: Bool) {
    if isTerminal {
      if always { say("\r\u{1B}[K\(text)\n") }
    } else {
      say(text + "\n")
    }
  }
}

extension Summary {
  func description(of total: Int) -> String {
    let parts = [
      (made, "made"), (unchanged, "unchanged"), (restored, "written again"), (unconfirmed, "not confirmed"), (failed, "failed"),
      (cancelled, "not done"),
    ]
    let counts = parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
    return "\(total) \(total == 1 ? "image" : "images")" + (counts.isEmpty ? "" : ": " + counts.joined(separator: ", "))
  }

  /// The exit status of the process. 130 is the status that shells report after SIGINT.
  var exitCode: ExitCode {
    if cancelled > 0 { return ExitCode(130) }
    return failed > 0 ? .failure : .success
  }
}
