/// A request's replacement for a component of its manager. A `nil` override means the manager's component.
public enum Override<Wrapped: Sendable>: Sendable {
  /// Uses this component.
  case use(Wrapped)
  /// Uses no such component.
  case disabled
  /// Uses the component that the closure makes from the manager's. If the manager has no component, the request has none.
  ///
  /// The closure is called for each load, and the options retain it. To keep state across loads, wrap the manager's component
  /// instead. The settings of the component that it returns are not checked.
  ///
  /// ```swift
  /// let patient = RequestOptions { $0.downloader = .adapted { $0.retrying(.standard) } }
  /// ```
  case adapted(@Sendable (Wrapped) -> Wrapped)
}

extension Override {
  /// The component that the request uses in place of the manager's, or `nil` if it has none or adapts the manager's.
  package var replacement: Wrapped? { if case .use(let component) = self { component } else { nil } }
}

extension Optional {
  /// Returns the component in effect, given the manager's.
  @inlinable
  package func resolved<Component>(_ inherited: Component?) -> Component? where Wrapped == Override<Component> {
    switch self {
    case nil: inherited
    case .use(let component)?: component
    case .disabled?: nil
    case .adapted(let change)?: inherited.map(change)
    }
  }
}
