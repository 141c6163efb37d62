#if !AsyncHTTP
/// A placeholder that names the disabled trait. The initializers have the labels of the real ones, because the compiler reports
/// wrong labels first.
@available(*, unavailable, message: "enable the trait 'AsyncHTTP' of the package etagere")
public struct AsyncHTTPDownloader {
  public init() {}
  public init(configuration: Any) {}
  public init(client: Any, connectionsPerHost: Int = 8, idleTimeout: Duration = .seconds(60)) {}
}
#endif
