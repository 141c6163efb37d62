extension ComponentID {
  /// Creates the identity of a component that wraps another. Identities are equal if both the wrapper and the inner component
  /// are.
  ///
  /// The length of the parameters comes first, because two pairs of wrapper and inner component could otherwise have the same
  /// joined text.
  package init(_ type: Any.Type, _ parameters: String = "", around inner: ComponentID) {
    self.init(type, parameters: "\(parameters.utf8.count):\(parameters)|\(inner.type)|\(inner.parameters)")
  }
}
