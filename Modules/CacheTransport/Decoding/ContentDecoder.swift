#if ContentDecoding
internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Undoes one content coding, step by step. Not safe to be used by two at the same time.
protocol ContentDecoder: AnyObject {
  /// Decodes what fits into one step's output, at most ``DecodingLimits/step`` bytes, and removes what it has taken from
  /// `input`.
  ///
  /// - Returns: empty when all of `input` is taken and nothing is left to give.
  /// - Throws: `CacheError.Code.damagedContentCoding`.
  func decode(_ input: inout Data) throws(CacheError) -> Data

  /// Whether the coding may end here.
  var isComplete: Bool { get }
}
#endif
