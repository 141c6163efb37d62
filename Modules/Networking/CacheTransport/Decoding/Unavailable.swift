#if !ContentDecoding
public import CacheCore

extension Downloader {
  /// Decodes bodies. Available with the trait 'ContentDecoding'.
  @available(*, unavailable, message: "enable the trait 'ContentDecoding' of the package etagere")
  public func decoding(limit: Int64 = 256 << 20, ratio: Int? = nil, codings: Int = 2) -> Self { self }
}
#endif
