#if AsyncHTTP
internal import NIOCore

extension Duration {
  /// Creates a duration from SwiftNIO's type.
  init(_ amount: TimeAmount) { self = .nanoseconds(amount.nanoseconds) }

  /// The duration for an error message: `60 s`, `0.5 s`.
  var inSeconds: String {
    let milliseconds = components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
    let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
    guard rest > 0 else { return "\(seconds) s" }
    var digits = String(1000 + rest).dropFirst()
    while digits.last == "0" { digits.removeLast() }
    return "\(seconds).\(digits) s"
  }
}

extension TimeAmount {
  /// Creates a time amount of at most a century.
  init(_ duration: Duration) {
    let century = Duration.seconds(3_155_760_000)
    let (seconds, attoseconds) = min(max(duration, .zero), century).components
    self = .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }
}
#endif
