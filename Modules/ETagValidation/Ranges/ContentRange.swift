internal import CacheCore
internal import HTTPTypes

/// The range of a partial response: a `Content-Range` with both ends and the complete length (RFC 9110 §14.4).
struct ContentRange: Equatable {
  let bytes: Range<Int64>
  let completeLength: Int64

  init(_ bytes: Range<Int64>, of completeLength: Int64) { (self.bytes, self.completeLength) = (bytes, completeLength) }

  /// Creates the range of a response. Returns `nil` if the field is missing, has different lines, lacks a number or is
  /// inconsistent.
  init?(_ fields: HTTPFields) {
    guard let line = fields.single(.contentRange) else { return nil }
    self.init(line.value)
  }

  init?(_ text: String) {
    let text = text[...].utf8.trimmingBlanks()
    guard text.count > 6, Substring(text.prefix(5)).lowercased() == "bytes", text.dropFirst(5).first == 0x20 else { return nil }
    let rest = text.dropFirst(6)
    guard let dash = rest.firstIndex(of: UInt8(ascii: "-")), let slash = rest.firstIndex(of: UInt8(ascii: "/")), dash < slash,
      let first = ByteRange.number(rest[..<dash]), let last = ByteRange.number(rest[rest.index(after: dash)..<slash]),
      let length = ByteRange.number(rest[rest.index(after: slash)...]), first <= last, last < length
    else { return nil }
    self.init(first..<(last + 1), of: length)
  }

  var text: String { "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(completeLength)" }

  /// The value of a `Range` field for these bytes.
  var requestValue: String { "bytes=\(bytes.lowerBound)-\(bytes.upperBound - 1)" }
}
