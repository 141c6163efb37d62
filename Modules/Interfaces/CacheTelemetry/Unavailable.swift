// If a trait is off, using its outlet produces an error that names the trait.
extension Telemetry.Outlet {
  #if !Logging
  /// Unavailable without the trait `Logging`.
  @available(*, unavailable, message: "enable the trait 'Logging' of the package etagere")
  public static func logging(_ logger: Any, level: Any = ()) -> Self { Self() }
  #endif

  #if !Metrics
  /// Unavailable without the trait `Metrics`.
  @available(*, unavailable, message: "enable the trait 'Metrics' of the package etagere")
  public static func metrics(factory: Any? = nil, evictions: Any = ()) -> Self { Self() }
  #endif

  #if !Tracing
  /// Unavailable without the trait `Tracing`.
  @available(*, unavailable, message: "enable the trait 'Tracing' of the package etagere")
  public static func tracing(_ tracer: Any? = nil) -> Self { Self() }
  #endif
}
