internal import CacheCore
internal import HTTPTypes

/// The use of partial responses (206). A stored one retains its status and `Content-Range`, and has its own variant, so it never
/// replaces the whole response.
public enum PartialResponses: String, Hashable, Sendable, CaseIterable {
  /// Returns partial responses without storing them.
  case ignored
  /// Stores partial responses and uses each for ranges inside it (RFC 9111 §3.3).
  case reused
  /// Stores partial responses, combines those with one strong validator, and requests only the bytes that are missing (§3.4). The
  /// cache must carry out `ValidationPlan.combine`.
  case completed
}

extension ETagValidator {
  public var combinesParts: Bool { parts == .completed }

  /// Returns the combination of stored parts with missing bytes that satisfies a request (RFC 9111 §3.4), or `nil` if there is
  /// none.
  ///
  /// The parts are those of the latest state, which its strong validator identifies. The latest part decides about freshness,
  /// because its fields are newer than those of the other parts (§3.2). Stale parts are confirmed by the response with missing
  /// bytes, or with any byte if none is missing (RFC 9110 §13.1.5).
  func combination(
    for request: HTTPRequest, _ directives: CacheControl, policy: LoadPolicy, stored: [StoredMetadata], now: Timestamp
  ) -> PartCombination? {
    guard parts == .completed, request.method == .get, !directives.noStore, !request.hasOwnCondition,
      request.headerFields.hasCapacity(for: 3)
    else { return nil }
    let known = stored.indices.compactMap { index -> (part: PartCombination.Part, state: PartState)? in
      guard let part = StoredPart(stored[index]), let state = PartState(stored[index], part), matches(stored[index], request)
      else { return nil }
      return (PartCombination.Part(index, part.bytes), state)
    }
    guard let latest = known.max(by: { Self.isOlder(stored[$0.part.index], stored[$1.part.index]) }) else { return nil }
    let metadata = stored[latest.part.index]
    guard let wanted = wanted(by: request, metadata, latest.state.completeLength) else { return nil }
    let use = StoredUse(freshness: metadata.freshness, directives: directives, now: now)
    let isUsable =
      switch policy {
      case .cacheFirst, .memoryElseReload, .cacheOnly: true
      case .revalidate(let floor, _): needsNoRevalidation(metadata, use, atMostEvery: floor, now: now)
      case .reload: false
      case .standard: use.isFresh || use.isAcceptedStale
      // The parts would be used without a revalidation in the background.
      case .staleWhileRevalidate: use.isFresh
      }
    let whole = whole(of: metadata, latest.state.completeLength)
    return PartCombination(
      parts: known.filter { $0.state == latest.state }.map(\.part).sorted { $0.bytes.lowerBound < $1.bytes.lowerBound },
      wanted: wanted, whole: whole, variant: SelectingFields(of: whole).variant,
      request: request.requestingParts(of: latest.state), requiresValidation: !isUsable)
  }

  /// Returns the positions of the bytes that a request wants, or `nil` if the origin must respond: to a range that cannot be
  /// satisfied, and to several ranges.
  private func wanted(by request: HTTPRequest, _ metadata: StoredMetadata, _ length: Int64) -> Range<Int64>? {
    guard request.headerFields.contains(.range), Preconditions(request: request).allowsRange(metadata) else { return 0..<length }
    return request.singleRange?.resolved(in: length)
  }

  /// Returns the metadata of the whole response of which a part is stored.
  private func whole(of part: StoredMetadata, _ length: Int64) -> StoredMetadata {
    var whole = part
    whole.response.status = .ok
    whole.response.headerFields = part.response.headerFields.removing { $0 == "content-range" || HTTPFields.digestsContent($0) }
    whole.response.headerFields.set(.contentLength, "\(length)")
    whole.request.headerFields[.range] = nil
    whole.bodyLength = length
    return whole
  }
}

/// The state of a resource that a part belongs to. Only parts of equal states are combined.
struct PartState: Equatable {
  let validator: RangeValidator
  let completeLength: Int64
  let coding: String?

  /// Returns `nil` if the part has no strong validator.
  init?(_ metadata: StoredMetadata, _ part: StoredPart) {
    let fields = metadata.response.headerFields
    guard let validator = RangeValidator(fields, now: metadata.responseTime) else { return nil }
    (self.validator, completeLength, coding) = (validator, part.completeLength, fields[.contentEncoding])
  }
}

extension HTTPRequest {
  /// Returns the request for parts of a known state. It has no range yet. If the resource has changed, the origin sends the whole
  /// response (RFC 9110 §13.1.5).
  fileprivate func requestingParts(of state: PartState) -> HTTPRequest {
    var request = self
    request.headerFields[.range] = nil
    request.headerFields[.ifRange] = state.validator.fieldValue
    if state.coding == nil { request.refusePlatformCodings() }
    return request
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
  ///
  /// The transfer of a part may have broken off, so the stored body may be shorter than its `Content-Range`.
  init?(_ metadata: StoredMetadata) {
    guard metadata.isPart, let range = ContentRange(metadata.response.headerFields),
      let completeLength = range.completeLength, case let length = metadata.bodyLength ?? range.length,
      (1...range.length).contains(length)
    else { return nil }
    (bytes, self.completeLength) = (range.bytes.lowerBound..<range.bytes.lowerBound + length, completeLength)
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
