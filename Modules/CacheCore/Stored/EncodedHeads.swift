internal import HTTPTypes
internal import Synchronization

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
  private let made = AtomicLazyReference<MessageHeadsBox>()

  init(_ bytes: UnsafeRawBufferPointer, _ ranges: HeadRanges) {
    self.bytes = Array(bytes)
    self.ranges = ranges
  }

  /// The decoded heads. Two concurrent callers may both decode them; the first result is kept.
  var decoded: MessageHeadsBox {
    if let made = made.load() { return made }
    let heads = bytes.withUnsafeBytes { bytes in
      func part(_ place: Range<Int>) -> RawByteReader { RawByteReader(UnsafeRawBufferPointer(rebasing: bytes[place])) }
      var (request, response) = (part(ranges.request), part(ranges.response))
      var trailers = ranges.trailers.map(part)
      return MessageHeads(request: request.request(), response: response.response(), trailers: trailers?.fields())
    }
    return made.storeIfNil(MessageHeadsBox(heads))
  }
}
