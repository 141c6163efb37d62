#if ContentDecoding
/// The limits of decoding. A few encoded bytes can stand for very many.
package struct DecodingLimits: Hashable, Sendable {
  /// The largest decoded body in bytes, also between two codings.
  let limit: Int64
  /// The largest quotient of decoded and received bytes, or `nil` for any.
  let ratio: Int?
  /// The largest number of codings of one body.
  let codings: Int

  package init(limit: Int64 = 256 << 20, ratio: Int? = nil, codings: Int = 2) {
    self.limit = max(0, limit)
    self.ratio = ratio.map { max(1, $0) }
    self.codings = max(1, codings)
  }

  /// The most bytes that one step makes: the cost of a decompression bomb before it is refused.
  static let step = 64 << 10
  /// The number of decoded bytes from which on the ratio counts. A short text of blanks is no attack.
  static let ratioThreshold: Int64 = 1 << 20
}
#endif
