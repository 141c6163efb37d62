/// Changes a value. Its type's name and its ``Component/id``'s parameters become part of the cache key: the parameters must name
/// every setting.
public protocol ResourceProcessor<Value>: Component {
  associatedtype Value: Sendable
  /// The changed value, or ``CacheError/Code/decodingFailed`` with the reason.
  func process(_ value: Value, _ metadata: StoredMetadata) throws(CacheError) -> Value
}
