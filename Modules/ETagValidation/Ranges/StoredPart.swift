internal import CacheCore
internal import HTTPTypes

/// A stored answer as the bytes that it holds: the whole, or, where it is a 206, one contiguous range (RFC 9111 §3.3).
///
/// A stored part keeps its `Content-Range` and, among the selecting fields, the range it was asked with: so its variant is not
/// the whole answer's, and no plain look into memory takes it for that.
struct StoredPart {
  let range: ContentRange

  /// Nil when the answer is no part, or does not say which.
  init?(_ metadata: StoredMetadata) {
    guard metadata.isPart, let range = ContentRange(metadata.response.headerFields),
      metadata.bodyLength.map({ $0 == Int64(range.bytes.count) }) ?? true
    else { return nil }
    self.range = range
  }

  /// The bytes of the stored body that answer a single range of the whole; nil when not all of them are here.
  func covered(_ asked: ByteRange) -> Range<Int64>? {
    guard let bytes = asked.resolved(in: range.completeLength), range.bytes.contains(bytes) else { return nil }
    return (bytes.lowerBound - range.bytes.lowerBound)..<(bytes.upperBound - range.bytes.lowerBound)
  }
}

extension StoredMetadata {
  /// One part of an answer, which must never pass for the whole (RFC 9111 §3.3).
  var isPart: Bool { response.status.code == 206 }
}

extension HTTPRequest {
  /// The single range that a GET asks for; nil without `Range`, or where it is ignored: malformed, of another unit, several
  /// ranges, another method (RFC 9110 §14.2).
  var singleRange: ByteRange? {
    guard method == .get, headerFields.contains(.range) else { return nil }
    let lines = headerFields[values: .range]
    guard lines.count == 1, let ranges = ByteRange.ranges(lines[0]), ranges.count == 1 else { return nil }
    return ranges[0]
  }
}
