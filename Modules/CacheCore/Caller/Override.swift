/// A component that a request inherits from its manager, replaces, or goes without.
public enum Override<Wrapped: Sendable>: Sendable {
  /// Uses the manager's component.
  case inherited
  /// Uses no such component.
  case disabled
  /// Uses this component instead of the manager's.
  case use(Wrapped)

  /// Returns the component in effect, given the manager's.
  @inlinable
  public func resolved(_ inherited: Wrapped?) -> Wrapped? {
    switch self {
    case .inherited: inherited
    case .disabled: nil
    case .use(let wrapped): wrapped
    }
  }
}
