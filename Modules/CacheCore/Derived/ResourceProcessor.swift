/// Changes a value.
///
/// The name of the type and the parameters of its ``Component/id`` become part of the cache key, so the parameters must include
/// every setting.
public protocol ResourceProcessor<Value>: Component {
  associatedtype Value: Sendable
  /// Returns the changed value.
  ///
  /// - Throws: ``CacheError/Code/decodingFailed`` with the reason.
  func process(_ value: Value, _ metadata: StoredMetadata) throws(CacheError) -> Value
}
