/// A component that a request inherits from its manager, replaces, or goes without.
public enum Override<Wrapped: Sendable>: Sendable {
  /// Uses the manager's component.
  case inherited
  /// Uses no such component.
  case disabled
  /// Uses this component instead of the manager's.
  case use(Wrapped)
  /// Uses the component that the closure makes from the manager's. If the manager has no component, the request has none.
  ///
  /// The closure is called for each load. A wrapper that counts over many loads belongs around the manager's own component.
  ///
  /// ```swift
  /// let patient = RequestOptions { $0.downloader = .adapted { $0.retrying(.standard) } }
  /// ```
  case adapted(@Sendable (Wrapped) -> Wrapped)

  /// Returns the component in effect, given the manager's.
  @inlinable
  public func resolved(_ inherited: Wrapped?) -> Wrapped? {
    switch self {
    case .inherited: inherited
    case .disabled: nil
    case .use(let wrapped): wrapped
    case .adapted(let change): inherited.map(change)
    }
  }
}
