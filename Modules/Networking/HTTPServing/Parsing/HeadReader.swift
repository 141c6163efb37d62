#if Server
import CacheCore
import HTTPTypes
import NIOCore

/// A strict parser of complete request heads (RFC 9112 §2.2, §3, §5).
struct HeadReader {
  let limits: RequestLimits

  /// Parses the head of a request.
  ///
  /// - Parameter bytes: The request line, the header section and the empty line. A CR precedes every LF.
  func head(_ bytes: UnsafeRawBufferPointer) throws(RequestRefusal) -> RequestHead {
    guard let end = bytes.firstIndex(of: 10) else { throw .malformed("the request line is missing") }
    let (method, rawTarget, isHTTP10) = try requestLine(UnsafeRawBufferPointer(rebasing: bytes[..<(end - 1)]))
    let fields = try fields(UnsafeRawBufferPointer(rebasing: bytes[(end + 1)...]))
    let (authority, path) = try target(rawTarget, method: method, fields: fields, isHTTP10: isHTTP10)
    return RequestHead(
      request: HTTPRequest(method: method, scheme: "http", authority: authority, path: path, headerFields: fields),
      rawTarget: rawTarget, isHTTP10: isHTTP10, framing: try RequestFraming(fields, isHTTP10: isHTTP10))
  }

  /// Parses a header or trailer section.
  ///
  /// - Parameter bytes: The field lines and the empty line.
  func fields(_ bytes: UnsafeRawBufferPointer) throws(RequestRefusal) -> HTTPFields {
    var fields: [HTTPField] = []
    fields.reserveCapacity(16)
    var start = 0
    while let end = bytes[start...].firstIndex(of: 10), end - 1 > start {
      guard fields.count < limits.fieldCount else {
        throw .fieldsTooLarge("more than \(limits.fieldCount) fields")
      }
      fields.append(try field(UnsafeRawBufferPointer(rebasing: bytes[start..<(end - 1)])))
      start = end + 1
    }
    return HTTPFields(fields)
  }

  private func requestLine(
    _ line: UnsafeRawBufferPointer
  ) throws(RequestRefusal) -> (HTTPRequest.Method, String, isHTTP10: Bool) {
    guard let first = line.firstIndex(of: 32), let last = line.lastIndex(of: 32), first < last else {
      throw .malformed("invalid request line")
    }
    let (name, target, version) = (line[..<first], line[(first + 1)..<last], line[(last + 1)...])
    guard name.allSatisfy(\.isTokenByte), let method = HTTPRequest.Method(String(decoding: name, as: UTF8.self)) else {
      throw .malformed("the method is not a token")
    }
    guard target.count <= limits.targetBytes else {
      throw RequestRefusal(status: .uriTooLong, reason: "the target has more than \(limits.targetBytes) bytes")
    }
    guard !target.isEmpty, target.allSatisfy(\.isVisible) else {
      throw .malformed("the target contains bytes that are not allowed in a URL")
    }
    return (method, String(decoding: target, as: UTF8.self), try isHTTP10(version))
  }

  private func isHTTP10(_ version: Slice<UnsafeRawBufferPointer>) throws(RequestRefusal) -> Bool {
    let digits = Array(version.dropFirst(5))
    guard version.count == 8, version.starts(with: "HTTP/".utf8), digits[1] == UInt8(ascii: "."),
      (48...57).contains(digits[0]), (48...57).contains(digits[2])
    else { throw .malformed("invalid HTTP version") }
    guard digits[0] == UInt8(ascii: "1") else {
      throw RequestRefusal(status: .httpVersionNotSupported, reason: "only HTTP/1.1 is supported")
    }
    return digits[2] == UInt8(ascii: "0")
  }

  private func field(_ line: UnsafeRawBufferPointer) throws(RequestRefusal) -> HTTPField {
    // Line folding is obsolete, and a client could use it to hide a field (RFC 9112 §5.2).
    guard let first = line.first, first != 32, first != 9 else { throw .malformed("a field line is folded") }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .malformed("a field line has no colon") }
    let name = line[..<colon]
    guard !name.isEmpty, name.allSatisfy(\.isTokenByte),
      let fieldName = HTTPField.Name(String(decoding: name, as: UTF8.self))
    else { throw .malformed("a field name is not a token") }
    var (start, end) = (colon + 1, line.count)
    while start < end, line[start] == 32 || line[start] == 9 { start += 1 }
    while start < end, line[end - 1] == 32 || line[end - 1] == 9 { end -= 1 }
    let value = UnsafeRawBufferPointer(rebasing: line[start..<end])
    var all: UInt8 = 0
    for byte in value {
      guard byte.isFieldByte else { throw .malformed("a field value contains control characters") }
      all |= byte
    }
    if all < 0x80 { return HTTPField(name: fieldName, value: String(decoding: value, as: UTF8.self)) }
    return HTTPField(name: fieldName, value: value)
  }

  // MARK: Targets

  /// Returns the host and the path of a request, from the target in any of its forms (RFC 9112 §3.2) and from `Host`.
  ///
  /// - Parameters:
  ///   - text: The target, in visible ASCII.
  ///   - method: The method. `CONNECT` and `OPTIONS` have special target forms.
  ///   - fields: All fields of the request.
  ///   - isHTTP10: Whether the client uses HTTP/1.0, which allows a missing `Host`.
  /// - Returns: The host and port as the client sent them, or `nil` if an HTTP/1.0 client sent none. The path and query,
  ///   unchanged, or `*` for `OPTIONS *`.
  private func target(
    _ text: String, method: HTTPRequest.Method, fields: HTTPFields, isHTTP10: Bool
  ) throws(RequestRefusal) -> (authority: String?, path: String) {
    guard method != .connect else { throw .notImplemented("CONNECT is not supported") }
    var authority: String?
    for field in fields where field.name.canonicalName == "host" {
      guard authority == nil else { throw .malformed("more than one Host") }
      authority = field.value
    }
    guard isHTTP10 || authority != nil else { throw .malformed("Host is missing") }
    if let authority, !Authority.isValid(authority) { throw .malformed("invalid Host") }
    guard !text.utf8.contains(UInt8(ascii: "#")) else { throw .malformed("the target contains a fragment") }
    if text.utf8.first == UInt8(ascii: "/") || text == "*" && method == .options { return (authority, text) }
    return try absolute(text)
  }

  /// Parses the absolute form, which every server must accept. It takes precedence over `Host` (RFC 9112 §3.2.2).
  private func absolute(_ text: String) throws(RequestRefusal) -> (String, String) {
    guard let separator = text.firstRange(of: "://") else { throw .malformed("the target is neither a path nor a URL") }
    let scheme = text[..<separator.lowerBound].lowercased()
    guard scheme == "http" || scheme == "https" else { throw .malformed("the target is not an http or https URL") }
    let rest = text[separator.upperBound...]
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = String(rest[..<end])
    guard Authority.isValid(authority) else { throw .malformed("invalid host in the target") }
    let path = rest[end...]
    return (authority, path.hasPrefix("/") ? String(path) : "/\(path)")
  }
}

/// A search for the empty line that ends a header section. It examines each byte once, even if bytes arrive one at a time.
struct HeadEnd {
  private let limits: RequestLimits
  private let hasRequestLine: Bool
  /// The start of the incomplete line and the end of the searched bytes, both relative to the reader index.
  private var lineStart = 0
  private var searched = 0

  /// - Parameters:
  ///   - limits: The limits of the section.
  ///   - hasRequestLine: Whether the section begins with a request line. Trailers do not.
  init(limits: RequestLimits, hasRequestLine: Bool) { (self.limits, self.hasRequestLine) = (limits, hasRequestLine) }

  /// Whether no byte of a section has been searched.
  var isAtStart: Bool { searched == 0 }

  /// Returns the length of the section including its empty line, or `nil` if the empty line has not arrived yet. The section
  /// begins at the buffer's reader index.
  ///
  /// An LF without a CR is refused, because other recipients may not treat it as the end of a line (RFC 9112 §2.2).
  mutating func find(in buffer: ByteBuffer) throws(RequestRefusal) -> Int? {
    let view = buffer.readableBytesView
    let start = view.startIndex
    while let end = view[(start + searched)...].firstIndex(of: 10) {
      let offset = end - start
      guard offset < limits.headBytes else { throw tooLarge }
      guard offset > lineStart, view[end - 1] == 13 else { throw .malformed("a line ends without CR") }
      searched = offset + 1
      if offset - 1 == lineStart {
        (lineStart, searched) = (0, 0)
        return offset + 1
      }
      lineStart = searched
    }
    searched = view.count
    guard searched < limits.headBytes else { throw tooLarge }
    return nil
  }

  private var tooLarge: RequestRefusal {
    hasRequestLine && lineStart == 0
      ? RequestRefusal(status: .uriTooLong, reason: "the request line has more than \(limits.headBytes) bytes")
      : .fieldsTooLarge("the header section has more than \(limits.headBytes) bytes")
  }
}

/// The character classes of RFC 9110 §5.6.
extension UInt8 {
  /// `ALPHA` or `DIGIT`.
  var isLetterOrDigit: Bool { (48...57).contains(self) || (65...90).contains(self) || (97...122).contains(self) }

  /// `HEXDIG`.
  var isHexDigit: Bool { hexValue != nil }

  /// A character of a registered name (RFC 3986 §3.2.2), including the percent sign of an escape.
  var isHostByte: Bool {
    if isLetterOrDigit { return true }
    switch self {
    case 0x21, 0x24...0x2E, 0x3B, 0x3D, 0x5F, 0x7E: return true
    default: return false
    }
  }

  /// A byte of a field value (RFC 9110 §5.5): visible, blank, or not ASCII. CR, LF and NUL are dangerous, and other control
  /// characters are invalid.
  var isFieldByte: Bool { self >= 0x20 && self != 0x7F || self == 9 }

  /// Visible ASCII, a character of a request target.
  var isVisible: Bool { (0x21...0x7E).contains(self) }
}
#endif
