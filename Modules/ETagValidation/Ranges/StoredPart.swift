internal import CacheCore
internal import HTTPTypes

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
