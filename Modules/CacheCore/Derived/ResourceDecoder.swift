#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Makes a value of bytes. Its type's name and its ``Component/id``'s parameters become part of the cache key: the parameters
/// must name every setting.
public protocol ResourceDecoder<Value>: Component {
  associatedtype Value: Sendable
  /// The value, or ``CacheError/Code/decodingFailed`` with the reason.
  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Value
  /// What a value weighs in memory, in bytes.
  func cost(of value: Value) -> Int
  /// How many bytes decoding takes for as long as it lasts, the value included, beside `data`: so many are decoded at once as a
  /// manager's memory budget has room for. 0, unless the decoder says otherwise: next to nothing.
  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int
}

extension ResourceDecoder {
  public func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int { 0 }
}
