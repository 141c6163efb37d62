#if !Origin
/// A name that says which trait is off.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct OriginServer {
  public static func start(link: Any? = nil, port: Int = 0, requestBodyLimit: Int = 0, keptBodyLimit: Int = 0, logLimit: Int = 0)
  {}
}

/// A name that says which trait is off.
@available(*, unavailable, message: "enable the trait 'Origin' of the package etagere")
public struct Route {
  public init(_ answer: Any) {}
}
#endif
