#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Makes bytes of a value, for a durable store. Its type's name and its ``Component/id``'s parameters become part of the cache
/// key: the parameters must name every setting.
public protocol ResourceEncoder<Value>: Component {
  associatedtype Value: Sendable
  /// Whether its bytes would hold all that is to be kept of a value: always, unless said otherwise. A value of which they would
  /// not is never stored; its original is, whatever the ``StoragePolicy``.
  func canEncode(_ value: Value) -> Bool
  /// Bytes that a decoder makes the value of again, or ``CacheError/Code/encodingFailed`` with the reason.
  ///
  /// - Parameters:
  ///   - value: what is to be kept.
  ///   - metadata: the original's.
  func encode(_ value: Value, _ metadata: StoredMetadata) throws(CacheError) -> Data
}

extension ResourceEncoder {
  public func canEncode(_ value: Value) -> Bool { true }
}
