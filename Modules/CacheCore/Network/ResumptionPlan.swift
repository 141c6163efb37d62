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
    if Self.tokens(head.headerFields[.acceptRanges]).contains("none") { return nil }
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
    // A platform that adds its own codings would also decode a part.
    if contentEncoding == nil, rest.head.headerFields[.acceptEncoding] == nil {
      rest.head.headerFields[.acceptEncoding] = "identity"
    }
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
    if fields.contentType?.lowercased().hasPrefix("multipart/byteranges") == true {
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

  private static func tokens(_ value: String?) -> [String] {
    guard let value else { return [] }
    return value.split(separator: ",").map { String($0.filter { $0 != " " && $0 != "\t" }).lowercased() }
  }
}
