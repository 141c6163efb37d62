extension ComponentID {
  /// Creates the identity of a component that wraps another. It is equal if both are.
  ///
  /// The length of the parameters comes first. It tells two wrappers apart whose texts would be alike when joined.
  package init(_ type: Any.Type, _ parameters: String = "", around inner: ComponentID) {
    self.init(type, parameters: "\(parameters.utf8.count):\(parameters)|\(inner.type)|\(inner.parameters)")
  }
}
