#if AsyncHTTP
public import ServiceLifecycle

/// A downloader can live in a `ServiceGroup`: before those that use it, so that it ends after them.
extension AsyncHTTPDownloader: Service {
  /// Waits for the group's graceful shutdown, lets what runs come to its end, and closes. A cancelled task ends what runs.
  public func run() async throws {
    // Cancelled or asked to shut down: either way it is to close, and the wait of `close` knows the difference.
    try? await gracefulShutdown()
    await close(finishingTransfers: true)
  }
}
#endif
