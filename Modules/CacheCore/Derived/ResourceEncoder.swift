#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Encodes a value into bytes for a durable store.
///
/// The name of the type and the parameters of its ``Component/id`` become part of the cache key, so the parameters must include
/// every setting.
public protocol ResourceEncoder<Value>: Component {
  associatedtype Value: Sendable
  /// Returns whether the encoded bytes can represent `value` completely. The default is `true`.
  ///
  /// A value that cannot be encoded is never stored. Its original is stored instead, whatever the ``StoragePolicy``.
  func canEncode(_ value: Value) -> Bool
  /// Returns bytes that a decoder can decode into the value again.
  ///
  /// - Parameters:
  ///   - value: The value to encode.
  ///   - metadata: The metadata of the original.
  /// - Throws: ``CacheError/Code/encodingFailed`` with the reason.
  func encode(_ value: Value, _ metadata: StoredMetadata) throws(CacheError) -> Data
}

extension ResourceEncoder {
  public func canEncode(_ value: Value) -> Bool { true }
}
