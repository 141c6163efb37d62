/// A heuristic lifetime for responses that state none (RFC 9111 §4.2.2): a percentage of the time since the last modification.
///
/// It applies only to heuristically cacheable status codes (RFC 9110 §15.1), and only with a valid `Last-Modified` field.
public struct Heuristics: Hashable, Sendable {
  /// The percentage, from 0 to 100.
  public let percent: Int
  /// The maximum lifetime, at least zero.
  public let longest: Duration

  /// Creates heuristics. The default is 10 %, as the RFC suggests, and at most one day.
  public init(percent: Int = 10, longest: Duration = .seconds(86_400)) {
    (self.percent, self.longest) = (percent, longest)
  }
}
