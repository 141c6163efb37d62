internal import HTTPTypes

/// Encoded message heads that have been checked.
final class EncodedHeads: Sendable {
  /// The positions of the parts.
  struct HeadRanges {
    var request: Range<Int>
    var response: Range<Int>
    var trailers: Range<Int>?
  }

  private let bytes: [UInt8]
  private let ranges: HeadRanges
  // `AtomicLazyReference` would look up its generic metadata at each use.
  private let made = Lock<MessageHeadsBox?>(nil)

  init(_ bytes: UnsafeRawBufferPointer, _ ranges: HeadRanges) {
    self.bytes = Array(bytes)
    self.ranges = ranges
  }

  /// The decoded heads. Two concurrent callers may both decode them; the first result is kept.
  var decoded: MessageHeadsBox {
    if let made = made.withLock({ $0 }) { return made }
    let heads = bytes.withUnsafeBytes { bytes in
      func part(_ place: Range<Int>) -> RawByteReader { RawByteReader(UnsafeRawBufferPointer(rebasing: bytes[place])) }
      var (request, response) = (part(ranges.request), part(ranges.response))
      var trailers = ranges.trailers.map(part)
      return MessageHeads(request: request.request(), response: response.response(), trailers: trailers?.fields())
    }
    return made.withLock { made in
      let first = made ?? MessageHeadsBox(heads)
      made = first
      return first
    }
  }
}
