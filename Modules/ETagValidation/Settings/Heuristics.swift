/// A guessed lifetime for answers that state none (RFC 9111 §4.2.2): a share of the time since the last modification.
///
/// Only for statuses that may be guessed about (RFC 9110 §15.1), and only with a `Last-Modified` that can be read.
public struct Heuristics: Hashable, Sendable {
  /// The share in per cent, 0 to 100.
  public let percent: Int
  /// No guess is longer.
  public let longest: Duration

  /// By default a tenth, as the RFC suggests, and a day at most.
  public init(percent: Int = 10, longest: Duration = .seconds(86_400)) {
    self.percent = min(100, max(0, percent))
    self.longest = max(.zero, longest)
  }
}
