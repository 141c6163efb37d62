#if AsyncHTTP
public import ServiceLifecycle

/// A downloader can run in a `ServiceGroup`. List it before the services that use it, so that it ends after them.
extension AsyncHTTPDownloader: Service {
  /// Waits for the group's graceful shutdown, then closes after the running transfers. Cancelling the task ends them.
  public func run() async throws {
    // Cancellation and shutdown both close the downloader. `close` ends the transfers only if the task is cancelled.
    try? await gracefulShutdown()
    await close(finishingTransfers: true)
  }
}
#endif
