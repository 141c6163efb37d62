#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Makes bytes of a value, for a durable store. Its type's name and its ``Component/id``'s parameters become part of the cache key: the parameters must name every
/// setting.
public protocol ResourceEncoder<Value>: Component {
  associatedtype Value: Sendable
  /// Bytes that a decoder makes the value of again, or ``CacheError/Code/encodingFailed`` with the reason.
  ///
  /// - Parameters:
  ///   - value: what is to be kept.
  ///   - metadata: the original's.
  func encode(_ value: Value, _ metadata: StoredMetadata) throws(CacheError) -> Data
}
