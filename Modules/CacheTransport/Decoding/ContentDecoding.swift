#if ContentDecoding
/// How far content codings are undone, and no further: a few bytes can mean very many.
public struct ContentDecoding: Hashable, Sendable {
  /// Bytes that a body may have when it is decoded, and between two codings.
  public let limit: Int64
  /// How many times larger than on the wire a decoded body may be, looked at from its second mebibyte on; nil: any. Deflate alone
  /// reaches 1,032.
  public let ratio: Int?
  /// How many codings, one around the other, are undone.
  public let codings: Int

  /// Limits of their parts.
  ///
  /// - Parameters:
  ///   - limit: decoded bytes.
  ///   - ratio: decoded bytes for each one on the wire; nil: any.
  ///   - codings: how many codings, one around the other; at least 1.
  public init(limit: Int64 = 256 << 20, ratio: Int? = nil, codings: Int = 2) {
    self.limit = max(0, limit)
    self.ratio = ratio.map { max(1, $0) }
    self.codings = max(1, codings)
  }

  /// Bytes that one step makes at most: what a bomb costs before it is refused.
  static let step = 64 << 10
  /// Decoded bytes from which on the ratio counts: a short text of blanks is no attack.
  static let ratioThreshold: Int64 = 1 << 20
}
#endif
