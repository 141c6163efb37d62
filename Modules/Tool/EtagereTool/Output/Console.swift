#if Demo
import ArgumentParser
import CommandIO
import Etagere
import Foundation

/// The standard streams: results on standard output, everything else on standard error.
///
/// No line has the user information of a URL, because output is often pasted into reports.
enum Console {
  /// Whether the last line of the terminal is a progress bar, which the next line of text replaces.
  private static let hasBar = Lock(false)
  /// Held while a line is written to standard output, so that lines do not mix.
  private static let output = Lock(())

  static func say(_ line: String) {
    do throws(CacheError) {
      let bytes = Data((UserInformation.removed(from: line) + "\n").utf8)
      try output.withLock { _ throws(CacheError) in
        // A stalled reader of standard output must not stop standard error. A terminal shows both, so no bar may come between.
        guard isatty(STDOUT_FILENO) == 1 else {
          clearBar()
          return try Descriptor.standardOutput.write(bytes)
        }
        try hasBar.withLock { hasBar throws(CacheError) in
          erase(&hasBar)
          try Descriptor.standardOutput.write(bytes)
        }
      }
    } catch {
      // A reader such as `head` closes the pipe when it has enough. That is not an error to report. A full disk must not look
      // like success.
      if error.errno != EPIPE { complain("cannot write standard output: \(error.reason)") }
      exit(ExitStatus.ioError.rawValue)
    }
  }

  /// Writes an error or a notice. `--quiet` does not suppress it.
  static func complain(_ line: String) { writeError("etagere-cli: \(line)\n") }

  /// Writes text to standard error in one call, so that texts of concurrent loads do not mix. An error of this has no other place
  /// to go, and is ignored.
  static func writeError(_ text: String) {
    hasBar.withLock { hasBar in
      erase(&hasBar)
      try? Descriptor.standardError.write(Data(UserInformation.removed(from: text).utf8))
    }
  }

  static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Draws a progress bar on the last line of the terminal.
  static func drawBar(_ line: String) {
    hasBar.withLock { hasBar in
      hasBar = true
      try? Descriptor.standardError.write(Data("\r\u{1B}[K\(line)".utf8))
    }
  }

  static func clearBar() { hasBar.withLock { erase(&$0) } }

  /// Called under the lock, so that no bar is drawn between the erasure and the text that follows it.
  private static func erase(_ hasBar: inout Bool) {
    guard hasBar else { return }
    hasBar = false
    try? Descriptor.standardError.write(Data("\r\u{1B}[K".utf8))
  }

  /// Writes one JSON document on one line, with sorted keys.
  static func json(_ value: some Encodable) throws {
    say(String(decoding: try JSONEncoder.line.encode(value), as: UTF8.self))
  }
}

extension JSONEncoder {
  /// A new encoder for documents on one line, with sorted keys.
  static var line: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}

extension [Duration] {
  /// Returns the shortest duration that this share of the durations does not exceed, or zero if there are none.
  func percentile(_ share: Double) -> Duration {
    let sorted = sorted()
    guard !sorted.isEmpty else { return .zero }
    return sorted[Swift.max(0, Swift.min(sorted.count, Int((Double(sorted.count) * share).rounded(.up))) - 1)]
  }
}

/// Values as text for people.
enum Text {
  /// A size in binary units: `512 B`, `4.9 KiB`, `2.22 MiB`, `512 MiB`.
  static func bytes(_ count: Int64) -> String {
    switch count {
    case ..<1_024: "\(count) B"
    case ..<1_048_525: decimal(Double(count) / 1_024, 1) + " KiB"
    case ..<1_073_736_458: decimal(Double(count) / 1_048_576, count % 1_048_576 == 0 ? 0 : 2) + " MiB"
    default: decimal(Double(count) / 1_073_741_824, count % 1_073_741_824 == 0 ? 0 : 2) + " GiB"
    }
  }

  static func count(_ number: Int, _ singular: String, _ plural: String) -> String {
    "\(number) \(number == 1 ? singular : plural)"
  }

  static func entries(_ number: Int) -> String { count(number, "entry", "entries") }

  static func milliseconds(_ duration: Duration) -> Double { duration / .milliseconds(1) }

  /// About three significant digits: 0.012, 1.23, 12.3, 123.
  static func time(_ milliseconds: Double) -> String {
    switch milliseconds {
    case ..<0.1: decimal(milliseconds, 4)
    case ..<10: decimal(milliseconds, 2)
    case ..<1_000: decimal(milliseconds, 1)
    default: decimal(milliseconds, 0)
    }
  }

  static func decimal(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

  /// A duration in the largest unit that leaves two digits: `90 s`, `15 min`, `36 h`, `3 d`.
  static func seconds(_ duration: Duration) -> String {
    let seconds = duration.components.seconds
    switch seconds {
    case ..<120: return "\(seconds) s"
    case ..<7_200: return "\(seconds / 60) min"
    case ..<172_800: return "\(seconds / 3_600) h"
    default: return "\(seconds / 86_400) d"
    }
  }

  /// An identifier of the library in the spelling of the command line: `schemeHandler` becomes `scheme-handler`, and `invalidURL`
  /// becomes `invalid-url`.
  static func kebabCase(_ name: String) -> String {
    var text = ""
    var wasLower = false
    for character in name {
      if character.isUppercase, wasLower { text.append("-") }
      wasLower = !character.isUppercase
      text.append(character.lowercased())
    }
    return text
  }

  /// The transform of every option that takes a path. A script with an unset variable must not use the current folder.
  static func path(_ text: String) throws -> String {
    guard !text.isEmpty else { throw ValidationError("a path cannot be empty") }
    return text
  }

  static func left(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: max(0, width - text.count)) }

  static func right(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }

  /// A row of a table: a name, and cells that end at the right of their columns, with a space before each of them.
  static func row(_ name: String, _ nameWidth: Int, _ cells: [String], _ widths: [Int]) -> String {
    left(name, nameWidth) + zip(cells, widths).map { right(" " + $0, $1) }.joined()
  }
}
#endif
