public import CacheCore
public import HTTPTypes

extension ETagValidator {
  /// Returns the reply from a stored response (RFC 9111 §4): its stored fields with the current `Age`, subject to the caller's
  /// own conditions.
  ///
  /// The conditions are evaluated in the order of RFC 9110 §13.2.2. If the response is not modified, the reply is a 304 with the
  /// fields of §15.4.5. A single range gets a 206 if it is within the body, and a 416 otherwise. Several ranges get the whole
  /// response, as §14.2 permits, and so does a range of a body of unknown length.
  public func reply(to request: HTTPRequest, from metadata: StoredMetadata, now: Timestamp) -> StoredReply {
    if request.hasConditionsOrRange, request.method == .get || request.method == .head {
      let conditions = Preconditions(request: request)
      if conditions.isNotModified(metadata) { return notModified(metadata, now) }
      if let range = request.singleRange, let reply = part(range, conditions, metadata, now) { return reply }
    }
    return StoredReply(head: head(of: metadata, now), content: request.method == .head ? .none : .whole)
  }

  private func head(of metadata: StoredMetadata, _ now: Timestamp) -> HTTPResponse {
    var head = metadata.response
    // Copied once, with capacity for `Age` and the cache's own status field.
    head.headerFields.reserveCapacity(head.headerFields.count + 2)
    head.headerFields.setAge(metadata.freshness.age(at: now))
    return head
  }

  private func notModified(_ metadata: StoredMetadata, _ now: Timestamp) -> StoredReply {
    var head = HTTPResponse(status: .notModified)
    let stored = metadata.response.headerFields
    let hasTag = stored.contains(.eTag)
    // Fields that describe bytes do not belong in a response without a body. `Last-Modified` is for responses without a tag
    // (RFC 9110 §15.4.5).
    head.headerFields = stored.removing { name in
      name == "last-modified" ? hasTag : HTTPFields.describesBytes(name) && name != "etag"
    }
    head.headerFields.setAge(metadata.freshness.age(at: now))
    return StoredReply(head: head, content: .none)
  }

  /// Returns the 206 or 416 for a range, or `nil` if the range is ignored.
  private func part(
    _ requested: ByteRange, _ conditions: Preconditions, _ metadata: StoredMetadata, _ now: Timestamp
  ) -> StoredReply? {
    guard conditions.allowsRange(metadata) else { return nil }
    if let part = StoredPart(metadata) {
      guard let bytes = part.covered(requested) else { return nil }
      let from = part.bytes.lowerBound
      let range = ContentRange((bytes.lowerBound + from)..<(bytes.upperBound + from), of: part.completeLength)
      return StoredReply(head: head(of: range, metadata, now), content: .range(bytes))
    }
    guard metadata.response.status == .ok, let length = metadata.bodyLength else { return nil }
    guard let bytes = requested.resolved(in: length) else {
      return StoredReply(
        head: HTTPResponse(status: .rangeNotSatisfiable, headerFields: [.contentRange: "bytes */\(length)"]), content: .none)
    }
    return StoredReply(head: head(of: ContentRange(bytes, of: length), metadata, now), content: .range(bytes))
  }

  private func head(of range: ContentRange, _ metadata: StoredMetadata, _ now: Timestamp) -> HTTPResponse {
    var head = HTTPResponse(status: .partialContent)
    // Digests of the content apply only to the whole content.
    head.headerFields = metadata.response.headerFields.removing { $0 == "content-digest" || $0 == "content-md5" }
    head.headerFields.set(.contentLength, "\(range.length)")
    head.headerFields.set(.contentRange, range.fieldValue)
    head.headerFields.setAge(metadata.freshness.age(at: now))
    return head
  }
}

/// A range in a `Range` field (RFC 9110 §14.1.2).
enum ByteRange: Equatable {
  /// A range from a byte to another, inclusive, or to the last byte.
  case from(Int64, to: Int64?)
  /// A range with the given number of bytes at the end.
  case suffix(Int64)

  /// Returns the ranges of the field, or `nil` if the field must be ignored, because of another unit or invalid syntax (§14.2).
  ///
  /// Numbers beyond 2^63 are read as 2^63 − 1, which no body reaches.
  static func ranges(_ text: String) -> [ByteRange]? {
    let text = text[...].utf8.trimmingBlanks()
    guard let equals = text.firstIndex(of: UInt8(ascii: "=")), Substring(text[..<equals]).lowercased() == "bytes" else {
      return nil
    }
    var ranges: [ByteRange] = []
    for member in text[text.index(after: equals)...].split(separator: UInt8(ascii: ","), omittingEmptySubsequences: true) {
      let member = member.trimmingBlanks()
      if member.isEmpty { continue }
      guard let range = ByteRange(member), ranges.count < 1_000 else { return nil }
      ranges.append(range)
    }
    return ranges.isEmpty ? nil : ranges
  }

  private init?(_ member: Substring.UTF8View) {
    guard let dash = member.firstIndex(of: UInt8(ascii: "-")) else { return nil }
    let tail = member[member.index(after: dash)...]
    if dash == member.startIndex {
      guard let count = Self.number(tail) else { return nil }
      self = .suffix(count)
      return
    }
    guard let first = Self.number(member[..<dash]) else { return nil }
    if tail.isEmpty {
      self = .from(first, to: nil)
    } else {
      guard let last = Self.number(tail), last >= first else { return nil }
      self = .from(first, to: last)
    }
  }

  /// Returns the number, or `nil` if the text does not consist of digits only. A number that is too large saturates.
  static func number(_ digits: Substring.UTF8View) -> Int64? {
    guard !digits.isEmpty, digits.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(Substring(digits)) ?? .max
  }

  /// Returns the bytes of this range in a body of `length` bytes, or `nil` if the range is not satisfiable (§14.1.2).
  func resolved(in length: Int64) -> Range<Int64>? {
    switch self {
    case .from(let first, let last):
      guard first < length else { return nil }
      return first..<(last.map { min($0, length - 1) + 1 } ?? length)
    case .suffix(let count):
      guard count > 0, length > 0 else { return nil }
      return max(0, length - count)..<length
    }
  }
}

/// A stored partial response (206) with one contiguous range of the whole (RFC 9111 §3.3).
///
/// It retains its `Content-Range`. The requested range is among its selecting fields, so its variant differs from that of the
/// whole response. A plain memory lookup never confuses the two.
struct StoredPart {
  /// The positions of its bytes in the whole.
  let bytes: Range<Int64>
  /// The length of the whole in bytes.
  let completeLength: Int64

  /// Creates a part, or returns `nil` if the response is not partial, or if its range or the length of the whole is unknown.
  init?(_ metadata: StoredMetadata) {
    guard metadata.isPart, let range = ContentRange(metadata.response.headerFields),
      let completeLength = range.completeLength, metadata.bodyLength.map({ $0 == range.length }) ?? true
    else { return nil }
    (bytes, self.completeLength) = (range.bytes, completeLength)
  }

  /// Returns the bytes of the stored body for a single range of the whole, or `nil` if the part does not contain all of them.
  func covered(_ requested: ByteRange) -> Range<Int64>? {
    guard let wanted = requested.resolved(in: completeLength), bytes.contains(wanted) else { return nil }
    return (wanted.lowerBound - bytes.lowerBound)..<(wanted.upperBound - bytes.lowerBound)
  }
}

extension StoredMetadata {
  /// Whether the response is partial. It must never be used as the whole response (RFC 9111 §3.3).
  var isPart: Bool { response.status.code == 206 }
}

extension HTTPRequest {
  /// The single range of a GET. It is `nil` without a `Range` field, or if the field is ignored: invalid syntax, another unit,
  /// several ranges or another method (RFC 9110 §14.2).
  var singleRange: ByteRange? {
    guard method == .get, headerFields.contains(.range) else { return nil }
    let lines = headerFields[values: .range]
    guard lines.count == 1, let ranges = ByteRange.ranges(lines[0]), ranges.count == 1 else { return nil }
    return ranges[0]
  }
}
