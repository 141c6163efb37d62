#if Tool
import Foundation

/// Standard output for results, standard error for complaints: one line each.
enum Console {
  static func say(_ line: String) {
    do {
      try FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    } catch {
      // A result that nobody gets is no result: a full disk must not look like success.
      complain("standard output can't be written: \(FileReason(error))")
      exit(ExitStatus.cannotWriteOutput.rawValue)
    }
  }

  static func complain(_ line: String) { draw("etagere: \(line)\n") }

  /// Standard error as it is: without it there is nobody to tell.
  static func draw(_ text: String) { try? FileHandle.standardError.write(contentsOf: Data(text.utf8)) }

  static var isErrorTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// One JSON document in one line, keys sorted.
  static func json(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    say(String(decoding: try encoder.encode(value), as: UTF8.self))
  }
}

extension [Duration] {
  /// The shortest duration that this share of the durations does not exceed, or zero if there are none.
  func percentile(_ share: Double) -> Duration {
    let sorted = sorted()
    guard !sorted.isEmpty else { return .zero }
    return sorted[Swift.max(0, Swift.min(sorted.count, Int((Double(sorted.count) * share).rounded(.up))) - 1)]
  }
}

/// Numbers as people read them.
enum Text {
  static func bytes(_ count: Int64) -> String {
    switch count {
    case ..<1_000: "\(count) B"
    case ..<1_000_000: decimal(Double(count) / 1_000, 1) + " kB"
    case ..<1_000_000_000: decimal(Double(count) / 1_000_000, 2) + " MB"
    default: decimal(Double(count) / 1_000_000_000, 2) + " GB"
    }
  }

  static func milliseconds(_ duration: Duration) -> Double { duration / .milliseconds(1) }

  /// Three significant digits or so: 0.012, 1.23, 12.3, 123.
  static func time(_ milliseconds: Double) -> String {
    switch milliseconds {
    case ..<0.1: decimal(milliseconds, 4)
    case ..<10: decimal(milliseconds, 2)
    case ..<1_000: decimal(milliseconds, 1)
    default: decimal(milliseconds, 0)
    }
  }

  static func decimal(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

  static func seconds(_ duration: Duration) -> String {
    let seconds = Int64(duration / .seconds(1))
    switch seconds {
    case ..<120: return "\(seconds) s"
    case ..<7_200: return "\(seconds / 60) min"
    case ..<172_800: return "\(seconds / 3_600) h"
    default: return "\(seconds / 86_400) d"
    }
  }

  static func left(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: max(0, width - text.count)) }

  static func right(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
}
#endif
