#if !Service
/// Unavailable without the trait `Service`. The initializers have the labels of the real ones, because the compiler reports wrong
/// labels first.
@available(*, unavailable, message: "enable the trait 'Service' of the package etagere")
public struct ImageService {
  public init(_ configuration: Any) {}
}

/// Unavailable without the trait `Service`.
@available(*, unavailable, message: "enable the trait 'Service' of the package etagere")
public struct SigningKey {
  public init(bytes: Any) {}
  public init(hexadecimal: Any) {}
}

/// Unavailable without the trait `Service`.
@available(*, unavailable, message: "enable the trait 'Service' of the package etagere")
public struct ImageSource {}
#endif
