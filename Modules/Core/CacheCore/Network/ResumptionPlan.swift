package import HTTPTypes

/// The conditions for resuming a body, decided when its head arrives. A pure value.
package struct ResumptionPlan: Hashable, Sendable {
  /// The use of a response to a request for the rest.
  package enum Verdict: Hashable, Sendable {
    /// Its bytes follow the received bytes.
    case append
    /// It is the complete, unchanged response. The received bytes are skipped.
    case skip
    /// It cannot be used, because the combined body might never have existed.
    case unusable(reason: String)
  }

  package let validator: RangeValidator
  /// The length of the complete body in bytes.
  package let length: Int64
  package let contentEncoding: String?

  /// Creates a plan, or `nil` if the rest cannot be requested or could belong to another resource.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - head: The head of the response.
  ///   - length: The announced length of the body in bytes.
  ///   - now: The time at which the response arrived.
  package init?(request: DownloadRequest, head: HTTPResponse, length: Int64?, now: Timestamp) {
    guard request.head.method == .get, request.body == nil, request.head.headerFields[.range] == nil, head.status == .ok else {
      return nil
    }
    // An engine that decodes removes the field and the length. The counted bytes would not be those of a range.
    guard let length, length > 0, head.headerFields.contentLength == length else { return nil }
    if head.headerFields[.acceptRanges]?.lowercasedMembers.contains("none") == true { return nil }
    guard let validator = RangeValidator(head.headerFields, now: now) else { return nil }
    self.validator = validator
    self.length = length
    contentEncoding = head.headerFields[.contentEncoding]
  }

  /// Creates the plan for a body whose head arrived earlier.
  package init(validator: RangeValidator, length: Int64, contentEncoding: String?) {
    (self.validator, self.length, self.contentEncoding) = (validator, length, contentEncoding)
  }

  /// Returns the request for the bytes from `position` on, if the resource has not changed.
  package func request(_ original: DownloadRequest, from position: Int64) -> DownloadRequest {
    var rest = original
    rest.head.headerFields[.range] = "bytes=\(position)-"
    rest.head.headerFields[.ifRange] = validator.fieldValue
    // These fields refer to an older response, and their 304 would say nothing about this one.
    rest.head.headerFields[.ifNoneMatch] = nil
    rest.head.headerFields[.ifModifiedSince] = nil
    if contentEncoding == nil { rest.head.refusePlatformCodings() }
    return rest
  }

  /// Returns the use of a response to ``request(_:from:)``.
  ///
  /// - Parameters:
  ///   - head: The head of the response.
  ///   - bodyLength: The announced length of its body in bytes.
  ///   - position: The first requested byte.
  package func judge(_ head: HTTPResponse, bodyLength: Int64?, at position: Int64) -> Verdict {
    switch head.status {
    case .partialContent: judgePart(head, bodyLength, position)
    case .ok:
      if isSame(head.headerFields), bodyLength == length {
        .skip
      } else {
        .unusable(reason: "the resource has changed")
      }
    default: .unusable(reason: "the response to the range request has status \(head.status.code)")
    }
  }

  private func judgePart(_ head: HTTPResponse, _ bodyLength: Int64?, _ position: Int64) -> Verdict {
    let fields = head.headerFields
    guard let range = ContentRange(fields) else {
      // A multipart response has no `Content-Range`.
      return .unusable(reason: "the partial response has no valid Content-Range")
    }
    if !head.isSinglePart {
      return .unusable(reason: "the partial response has several parts")
    }
    guard range.bytes.lowerBound == position, range.bytes.upperBound == length, range.completeLength == length,
      bodyLength == range.length
    else {
      return .unusable(reason: "the partial response (\(range.fieldValue)) is not the requested range")
    }
    // A server that does not support `If-Range` sends parts of the current representation.
    return isSame(fields) ? .append : .unusable(reason: "the resource has changed")
  }

  private func isSame(_ fields: HTTPFields) -> Bool {
    validator.isConfirmed(by: fields) && fields[.contentEncoding] == contentEncoding
  }
}

/// A strong validator of a response. It allows parts of two transfers to be combined (RFC 9110 §13.1.5).
package enum RangeValidator: Hashable, Sendable {
  /// A strong entity tag, including its quotes.
  case tag(String)
  /// A `Last-Modified` date that is a strong validator, verbatim.
  case date(String)

  /// The value of an `If-Range` field.
  package var fieldValue: String {
    switch self {
    case .tag(let value), .date(let value): value
    }
  }

  /// Creates the strong validator of the fields, or `nil` if there is none.
  ///
  /// A weak tag is not one and also rules out the date. A date may be used only without any tag (RFC 9110 §13.1.5). Different
  /// lines of a field are no validator.
  package init?(_ fields: HTTPFields, now: Timestamp) {
    if fields.contains(.eTag) {
      guard let strong = Self.strongTag(of: fields) else { return nil }
      self = .tag(strong)
    } else {
      guard let value = fields.single(.lastModified)?.value, let modified = HTTPDate(value, receivedAt: now)?.timestamp,
        let sent = fields.date(receivedAt: now), sent - modified >= Self.settled
      else { return nil }
      self = .date(value)
    }
  }

  /// Returns whether the fields identify the same bytes.
  package func isConfirmed(by fields: HTTPFields) -> Bool {
    switch self {
    case .tag(let tag): Self.strongTag(of: fields) == tag
    case .date(let date): !fields.contains(.eTag) && fields.single(.lastModified)?.value == date
    }
  }

  /// The minimum age of the last change that makes its date a strong validator.
  ///
  /// RFC 9110 §8.8.2.2 requires one second if both dates have the same clock, or else enough for certainty. The clocks are
  /// unknown here. Older RFCs name one minute.
  private static let settled = Duration.seconds(60)

  /// Returns the tag if it is a valid strong tag (RFC 9110 §8.8.3).
  private static func strongTag(of fields: HTTPFields) -> String? {
    guard let line = fields.single(.eTag) else { return nil }
    let text = line.value[...].utf8.trimmingBlanks()
    guard text.count >= 2, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\""),
      text.dropFirst().dropLast().allSatisfy({ $0 == 0x21 || (0x23...0x7e).contains($0) || $0 >= 0x80 })
    else { return nil }
    return String(Substring(text))
  }
}

/// The range of bytes in a 206 response (`Content-Range`, RFC 9110 §14.4).
package struct ContentRange: Hashable, Sendable {
  /// The positions of the bytes in the complete representation: at least one, and none of them beyond its end.
  package let bytes: Range<Int64>
  /// The length of the complete representation in bytes, or `nil` if the server does not know it.
  package let completeLength: Int64?

  /// Creates a range of a representation.
  ///
  /// - Parameters:
  ///   - bytes: The positions of the bytes, at least one.
  ///   - completeLength: The length of the complete representation, at least the end of the range.
  package init(_ bytes: Range<Int64>, of completeLength: Int64) { (self.bytes, self.completeLength) = (bytes, completeLength) }

  /// Reads the field of a response. Returns `nil` if it is absent, has different lines or has an invalid value.
  package init?(_ fields: HTTPFields) {
    guard let line = fields.single(.contentRange) else { return nil }
    self.init(String(Substring(line.value[...].utf8.trimmingBlanks())))
  }

  /// Parses a field value. Returns `nil` for a unit other than bytes, for an unsatisfied range (`bytes */9`), for syntax that the
  /// grammar does not have (signs, more than one space), for inconsistent numbers and for numbers from 2^63.
  package init?(_ value: String) {
    // Names of units are case-insensitive (§14.1).
    guard value.prefix(6).lowercased() == "bytes " else { return nil }
    let sides = value.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
    guard sides.count == 2 else { return nil }
    let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
    // Without a complete length, only this bounds the last position, and the end of the range must not overflow.
    guard ends.count == 2, let first = Int64(digits: ends[0]), let last = Int64(digits: ends[1]), first <= last, last < .max
    else { return nil }
    if sides[1] == "*" {
      completeLength = nil
    } else {
      guard let length = Int64(digits: sides[1]), last < length else { return nil }
      completeLength = length
    }
    bytes = first..<(last + 1)
  }

  /// The length of the range in bytes. `bytes.count` is an `Int`, which may be too small for it.
  package var length: Int64 { bytes.upperBound - bytes.lowerBound }

  /// The value of the field.
  package var fieldValue: String {
    "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(completeLength.map { "\($0)" } ?? "*")"
  }
}

extension HTTPResponse {
  /// Whether the response is one part (RFC 9110 §15.3.7.1), and not several.
  package var isSinglePart: Bool {
    status == .partialContent && headerFields.contentType?.lowercased().hasPrefix("multipart/byteranges") != true
  }
}

extension Range<Int64> {
  /// Returns the first position that none of the parts has, or `nil` if they have all.
  ///
  /// - Parameter parts: The parts, in the order of their first bytes.
  package func firstMissing(apartFrom parts: some Sequence<Range<Int64>>) -> Int64? {
    var next = lowerBound
    for part in parts where part.lowerBound <= next { next = Swift.max(next, part.upperBound) }
    return next < upperBound ? next : nil
  }
}

extension HTTPRequest {
  /// Requests no content coding, unless the request names some itself. A platform adds its own codings to a request that names
  /// none, and would decode a part as if it were a whole body.
  package mutating func refusePlatformCodings() {
    if headerFields[.acceptEncoding] == nil { headerFields[.acceptEncoding] = "identity" }
  }
}
