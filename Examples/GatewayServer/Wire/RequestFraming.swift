#if Gateway
import HTTPTypes

/// Where a request's body ends (RFC 9112 §6.3).
enum RequestFraming: Hashable, Sendable {
  case none
  case length(Int64)
  case chunked

  /// What the fields say, without a guess: whatever another recipient could read otherwise is refused (RFC 9112 §11.2).
  ///
  /// - Parameters:
  ///   - fields: all that came.
  ///   - isHTTP10: a client of HTTP/1.0 can't use a transfer coding (§6.1).
  init(_ fields: HTTPFields, isHTTP10: Bool) throws(RequestRefusal) {
    let lengths = fields[values: .contentLength]
    if fields.contains(.transferEncoding) {
      guard !isHTTP10 else { throw .malformed("Transfer-Encoding in an HTTP/1.0 request") }
      guard lengths.isEmpty else { throw .malformed("Transfer-Encoding together with Content-Length") }
      try Self.check(codings: fields[values: .transferEncoding])
      self = .chunked
      return
    }
    guard let text = lengths.first else {
      self = .none
      return
    }
    // A repeated and equal length may be taken for one (§6.3); whoever sends two is no client that is worth the risk.
    guard lengths.count == 1 else { throw .malformed("more than one Content-Length") }
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }), let length = Int64(text) else {
      throw .malformed("Content-Length is no number")
    }
    self = length == 0 ? .none : .length(length)
  }

  /// `chunked`, once and last; no other coding is undone here (§6.1: 501).
  private static func check(codings values: [String]) throws(RequestRefusal) {
    let codings = values.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
      .map { $0.trimmingBlanks().lowercased() }.filter { !$0.isEmpty }
    guard codings.last == "chunked" else {
      throw codings.contains("chunked") || codings.isEmpty
        ? .malformed("a transfer coding that does not end with chunked")
        : .notImplemented("an unknown transfer coding")
    }
    guard codings.count == 1 else {
      throw codings.dropLast().contains("chunked")
        ? .malformed("chunked more than once") : .notImplemented("an unknown transfer coding")
    }
  }
}

extension Substring {
  /// Without the blanks of RFC 9110 §5.6.3 at both ends.
  func trimmingBlanks() -> Substring {
    var rest = self
    while let first = rest.utf8.first, first == 32 || first == 9 { rest.removeFirst() }
    while let last = rest.utf8.last, last == 32 || last == 9 { rest.removeLast() }
    return rest
  }
}
#endif
