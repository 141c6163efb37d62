#if !SQLite
/// A name that says which trait is off. The initializers have the labels of the real ones, since the compiler reports wrong
/// labels first.
@available(*, unavailable, message: "enable the trait 'SQLite' of the package etagere")
public struct SQLiteCache {
  public init(folder: Any, configuration: Any = ()) {}
  public init(path: String, configuration: Any = ()) {}
}
#endif
