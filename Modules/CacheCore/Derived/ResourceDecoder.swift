#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Decodes bytes into a value.
///
/// The name of the type and the parameters of its ``Component/id`` become part of the cache key, so the parameters must include
/// every setting.
public protocol ResourceDecoder<Value>: Component {
  associatedtype Value: Sendable
  /// Returns the decoded value.
  ///
  /// - Throws: ``CacheError/Code/decodingFailed`` with the reason.
  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Value
  /// Returns the memory cost of a value, in bytes.
  func cost(of value: Value) -> Int
  /// Returns the additional memory that decoding `data` needs while it runs, including the value, in bytes.
  ///
  /// A manager limits concurrent decoding so that the sum stays within its memory budget. The default is 0.
  func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int
}

extension ResourceDecoder {
  public func workingMemory(for data: Data, _ metadata: StoredMetadata) -> Int { 0 }
}
