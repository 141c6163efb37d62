internal import CacheCore
internal import HTTPTypes

/// How the rest of a body can be had, settled when its head came: pure, over values.
struct ResumptionPlan: Hashable, Sendable {
  /// What an answer to a request for the rest is good for.
  enum Verdict: Hashable, Sendable {
    /// Its bytes follow those that are there.
    case append
    /// It brings the whole once more, and the same: what is there already is skipped.
    case skip
    /// Nothing: joined to what is there it might make a body that never was.
    case unusable(reason: String)
  }

  let validator: RangeValidator
  /// Bytes of the whole.
  let length: Int64
  let contentEncoding: String?

  /// Nil where the rest can't be asked for, or could not be told from another resource's.
  ///
  /// - Parameters:
  ///   - request: what was asked.
  ///   - head: what was answered.
  ///   - length: bytes that the body was announced with.
  ///   - now: when the answer came.
  init?(request: DownloadRequest, head: HTTPResponse, length: Int64?, now: Timestamp) {
    guard request.head.method == .get, request.body == nil, request.head.headerFields[.range] == nil, head.status == .ok else {
      return nil
    }
    // Where an engine has taken a content coding off, neither the field nor the length is left: the bytes that were counted would
    // not be those that a range counts.
    guard let length, length > 0, head.headerFields[.contentLength].flatMap(ContentRange.number) == length else { return nil }
    if Self.tokens(head.headerFields[.acceptRanges]).contains("none") { return nil }
    guard let validator = RangeValidator(head.headerFields, now: now) else { return nil }
    self.validator = validator
    self.length = length
    contentEncoding = head.headerFields[.contentEncoding]
  }

  /// The request for everything from `position` on, if nothing has changed.
  func request(_ original: DownloadRequest, from position: Int64) -> DownloadRequest {
    var rest = original
    rest.head.headerFields[.range] = "bytes=\(position)-"
    rest.head.headerFields[.ifRange] = validator.fieldValue
    // They asked about an older answer, and their 304 would say nothing about this one.
    rest.head.headerFields[.ifNoneMatch] = nil
    rest.head.headerFields[.ifModifiedSince] = nil
    // A platform that adds codings of its own would take one off a part too.
    if contentEncoding == nil, rest.head.headerFields[.acceptEncoding] == nil {
      rest.head.headerFields[.acceptEncoding] = "identity"
    }
    return rest
  }

  /// What an answer to ``request(_:from:)`` is good for.
  ///
  /// - Parameters:
  ///   - head: the answer's.
  ///   - bodyLength: bytes that its body was announced with.
  ///   - position: the first byte that was asked for.
  func judge(_ head: HTTPResponse, bodyLength: Int64?, at position: Int64) -> Verdict {
    switch head.status {
    case .partialContent: judgePart(head, bodyLength, position)
    case .ok:
      if isSame(head.headerFields), bodyLength == length {
        .skip
      } else {
        .unusable(reason: "the resource has changed")
      }
    default: .unusable(reason: "the request for the rest was answered \(head.status.code)")
    }
  }

  private func judgePart(_ head: HTTPResponse, _ bodyLength: Int64?, _ position: Int64) -> Verdict {
    let fields = head.headerFields
    guard let value = fields[.contentRange], let range = ContentRange(value) else {
      // Several parts at once come without the field.
      return .unusable(reason: "the part that came does not say which it is")
    }
    if fields[.contentType]?.lowercased().hasPrefix("multipart/byteranges") == true {
      return .unusable(reason: "several parts came instead of one")
    }
    guard range.first == position, range.last == length - 1, range.complete == length, bodyLength == range.length else {
      return .unusable(reason: "the part that came (\(value)) is not the one that was asked for")
    }
    // `If-Range` binds a server that knows it; one that does not sends parts of whatever it has.
    return isSame(fields) ? .append : .unusable(reason: "the resource has changed")
  }

  private func isSame(_ fields: HTTPFields) -> Bool {
    validator.isConfirmed(by: fields) && fields[.contentEncoding] == contentEncoding
  }

  private static func tokens(_ value: String?) -> [String] {
    guard let value else { return [] }
    return value.split(separator: ",").map { String($0.filter { $0 != " " && $0 != "\t" }).lowercased() }
  }
}
