#if ContentDecoding
internal import CacheCore

/// The limits of decoding, which protect against decompression bombs.
package struct DecodingLimits: Hashable, Sendable {
  /// The maximum size of a decoded body in bytes, also between two codings.
  let limit: Int64
  /// The maximum quotient of decoded and received bytes, or `nil` for no limit.
  let ratio: Int?
  /// The maximum number of codings of one body.
  let codings: Int

  package init(limit: Int64 = 256 << 20, ratio: Int? = nil, codings: Int = 2) {
    self.limit = limit
    self.ratio = ratio
    self.codings = codings
  }

  func check() throws(CacheError) {
    try CacheError.require("limit", limit, in: 0...)
    try CacheError.require("ratio", ratio, in: 1...)
    try CacheError.require("codings", codings, in: 1...)
  }

  /// The maximum number of bytes that one step produces. It bounds the cost of a decompression bomb.
  static let step = 64 << 10
  /// The number of decoded bytes from which the ratio is checked. A short text of blanks is not an attack.
  static let ratioThreshold: Int64 = 1 << 20
}
#endif
