#if !SQLite
/// Unavailable without the trait `SQLite`. The initializers have the labels of the real ones, because the compiler reports wrong
/// labels first.
@available(*, unavailable, message: "enable the trait 'SQLite' of the package etagere")
public struct SQLiteCache {
  public init(folder: Any, configuration: Any = ()) {}
  public init(path: String, configuration: Any = ()) {}
}

/// Unavailable without the trait `SQLite`.
@available(*, unavailable, message: "enable the trait 'SQLite' of the package etagere")
public struct SQLiteCounters {}
#endif
