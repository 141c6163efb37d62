#if ContentDecoding
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// A decoder for one content coding that works in steps. It is not safe for concurrent use.
protocol ContentDecoder: AnyObject {
  /// Decodes at most ``DecodingLimits/step`` bytes and removes the consumed bytes from `input`.
  ///
  /// - Returns: The decoded bytes, empty if all of `input` was consumed without further output.
  /// - Throws: `CacheError.Code.damagedContentCoding`.
  func decode(_ input: inout Data) throws(CacheError) -> Data

  /// Whether the encoded data may end at this point.
  var isComplete: Bool { get }
}
#endif
