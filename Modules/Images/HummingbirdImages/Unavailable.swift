#if !Service
/// Unavailable without the trait `Service`. The initializer has the label of the real one, because the compiler reports wrong
/// labels first.
@available(*, unavailable, message: "enable the trait 'Service' of the package etagere")
public struct ImageRoutes {
  public init(_ service: Any, client: Any = ()) {}
}
#endif
