/// The downloader that ``Downloader/hooked(by:)`` returns.
package final class HookedDownloader: Downloader {
  package let id = ComponentID.unique(HookedDownloader.self)
  private let base: any Downloader
  private let hooks: DownloaderHooks

  package init(_ base: any Downloader, hooks: DownloaderHooks) { (self.base, self.hooks) = (base, hooks) }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard hooks.isSet else { return try await base.download(request) }
    var request = request
    let exchange = try HookedExchange(hooks, &request)
    exchange.willStart()
    let response: DownloadResponse
    do {
      response = try await base.download(request)
    } catch {
      exchange.finish(.failure(error))
      throw error
    }
    return try await exchange.admit(response)
  }
}

extension Downloader {
  /// Returns this downloader with hooks. The result's identity is unique, because hooks cannot be compared.
  ///
  /// ```swift
  /// var hooks = DownloaderHooks()
  /// hooks.onRequestSent.delegate(on: watcher) { (watcher, exchange) in watcher.note("\(exchange.request)") }
  /// let watched = engine.hooked(by: hooks)
  /// ```
  ///
  /// - Parameter hooks: The hooks, as they are now. Their targets are referenced weakly. After the release of a target, its hooks
  ///   are not called, and those that replace bytes refuse each download (``DownloaderHooks``).
  public func hooked(by hooks: DownloaderHooks) -> some Downloader { HookedDownloader(self, hooks: hooks) }
}
