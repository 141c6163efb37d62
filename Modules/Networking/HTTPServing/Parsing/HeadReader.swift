#if Server
import CacheCore
import HTTPTypes

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
#endif
