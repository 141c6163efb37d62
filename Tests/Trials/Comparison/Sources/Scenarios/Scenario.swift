import Foundation

/// A situation in which a cache can be right or wrong.
enum Scenario: String, CaseIterable, Codable, Sendable {
  case unchanged, changed, vary, offline, cut, flip
  case kill
  case full
  case processes
  case restart
  case fresh

  /// The heading of the row.
  var title: String {
    switch self {
    case .unchanged: "unchanged image, `no-cache`"
    case .changed: "changed image at the same URL, `no-cache`"
    case .vary: "`Vary: Accept-Language`, two languages"
    case .offline: "stale image (`max-age=0`), restart, origin unreachable"
    case .cut: "connection closed in the middle of the body"
    case .flip: "one bit of the stored body flipped, restart"
    case .kill: "kill -9 while new images are stored, 12 times"
    case .full: "no file can be larger than 16 KiB (`RLIMIT_FSIZE`)"
    case .processes: "two processes on one folder"
    case .restart: "unchanged image, `no-cache`, restart"
    case .fresh: "fresh image (`max-age=3600`), restart"
    }
  }

  /// The behavior that passes.
  var expectation: String {
    switch self {
    case .unchanged: "a conditional request, 304, no second body"
    case .changed: "the new image"
    case .vary: "each language its own image, each transferred once"
    case .offline: "the stored image"
    case .cut: "never half an image, all bytes in the end"
    case .flip: "the damage is noticed, the correct image is shown"
    case .kill: "no wrong image afterwards"
    case .full: "no load fails, and images are stored again afterwards"
    case .processes: "no wrong image, one process uses what the other stored"
    case .restart: "a conditional request, 304, no second body"
    case .fresh: "the stored image without a request"
    }
  }
}

/// The outcome of one scenario with one loader.
struct Finding: Codable, Sendable {
  enum Verdict: String, Codable, Sendable {
    case passes, fails
    /// The situation cannot be created for this loader.
    case doesNotApply = "does not apply"
  }

  var verdict: Verdict
  var text: String

  static func passes(_ text: String) -> Finding { Finding(verdict: .passes, text: text) }
  static func fails(_ text: String) -> Finding { Finding(verdict: .fails, text: text) }
  static func doesNotApply(_ text: String) -> Finding { Finding(verdict: .doesNotApply, text: text) }
}
