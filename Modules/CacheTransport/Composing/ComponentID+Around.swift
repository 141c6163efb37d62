internal import CacheCore

extension ComponentID {
  /// Of a part that stands around another: equal where both are.
  ///
  /// The length in front keeps two stacks apart whose texts would read alike when they are put together.
  init(_ type: Any.Type, _ parameters: String = "", around inner: ComponentID) {
    self.init(type, parameters: "\(parameters.utf8.count):\(parameters)|\(inner.type)|\(inner.parameters)")
  }
}
