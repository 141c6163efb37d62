#if Server
import CacheCore
import HTTPTypes

/// The framing of a request body, which determines its end (RFC 9112 §6.3).
enum RequestFraming: Hashable, Sendable {
  case noBody
  case length(Int64)
  case chunked

  /// Reads the framing from the fields. Fields that another recipient could interpret differently are refused (RFC 9112 §11.2).
  ///
  /// - Parameters:
  ///   - fields: All fields of the request.
  ///   - isHTTP10: Whether the client uses HTTP/1.0, which has no transfer codings (§6.1).
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
      self = .noBody
      return
    }
    // A recipient may accept repeated equal lengths (§6.3). No usual client sends them, so the risk is not worth it.
    guard lengths.count == 1 else { throw .malformed("more than one Content-Length") }
    guard let length = Int64(digits: text) else { throw .malformed("Content-Length is not a number") }
    self = length == 0 ? .noBody : .length(length)
  }

  /// Checks that `chunked` is the only coding. Other codings are not implemented (§6.1: 501).
  private static func check(codings values: [String]) throws(RequestRefusal) {
    let codings = values.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
      .map { Substring($0.utf8.trimmingBlanks()).lowercased() }.filter { !$0.isEmpty }
    guard codings.last == "chunked" else {
      throw codings.contains("chunked") || codings.isEmpty
        ? .malformed("the last transfer coding is not chunked")
        : .notImplemented("unknown transfer coding")
    }
    guard codings.count == 1 else {
      throw codings.dropLast().contains("chunked")
        ? .malformed("more than one chunked coding") : .notImplemented("unknown transfer coding")
    }
  }
}
#endif
