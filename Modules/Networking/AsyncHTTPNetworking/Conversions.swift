#if AsyncHTTP
internal import CacheCore
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1

extension HTTPFields {
  /// Creates fields in the order in which they were received, including repeated ones. A name that is not a token is not valid in
  /// HTTP and is dropped.
  ///
  /// NIO reads a value as UTF-8, so invalid bytes have already become U+FFFD.
  init(received headers: HTTPHeaders) {
    self.init()
    reserveCapacity(headers.count)
    for (rawName, value) in headers {
      guard let name = HTTPField.Name(rawName) else { continue }
      append(HTTPField(name: name, value: value))
    }
  }
}

extension HTTPHeaders {
  /// The fields that describe the connection (RFC 9110 §7.6.1) or frame the body. The client sets them, and HTTP/2 forbids most
  /// of them (RFC 9113 §8.2.2).
  private static let connectionFields: Set<HTTPField.Name> = Set(
    [
      "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Upgrade", "Transfer-Encoding", "Content-Length", "Trailer",
      RequestMarks.exactTarget, RequestMarks.interimReport,
    ]
    .compactMap { HTTPField.Name($0) })

  /// Creates the headers of the message, unchanged.
  init(sending fields: HTTPFields) {
    var dropped = Self.connectionFields
    if let named = fields[.connection] { dropped.formUnion(named.lowercasedMembers.compactMap { HTTPField.Name($0) }) }
    self.init()
    reserveCapacity(fields.count + 2)
    for field in fields where !dropped.contains(field.name) { add(name: field.name.rawName, value: field.value) }
  }
}

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
