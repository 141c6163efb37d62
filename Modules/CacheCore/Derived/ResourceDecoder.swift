#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Makes a value of bytes. Its type's name and its ``Component/id``'s parameters become part of the cache key: the parameters must name every setting.
public protocol ResourceDecoder<Value>: Component {
  associatedtype Value: Sendable
  /// The value, or ``CacheError/Code/decodingFailed`` with the reason.
  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Value
  /// What a value weighs in memory, in bytes.
  func cost(of value: Value) -> Int
}
