/// The downloader that ``Downloader/hooked(by:)`` returns.
package final class HookedDownloader: Downloader {
  private struct Held {
    weak var hooks: (any DownloaderHooks)?
  }

  package let id = ComponentID.unique(HookedDownloader.self)
  private let base: any Downloader
  private let held: Lock<Held>

  package init(_ base: any Downloader, hooks: any DownloaderHooks) {
    self.base = base
    held = Lock(Held(hooks: hooks))
  }

  package var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  package func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let hooks = held.withLock({ $0.hooks }) else { return try await base.download(request) }
    let exchange = HookedExchange(hooks, request)
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
  /// Returns this downloader with hooks, for engines without their own. The result's identity is unique, because hooks cannot be
  /// compared.
  ///
  /// ```swift
  /// let watched = engine.hooked(by: watcher)  // references `watcher` weakly
  /// ```
  ///
  /// - Parameter hooks: The hooks, referenced weakly. After they are released, the downloader works without hooks.
  public func hooked(by hooks: any DownloaderHooks) -> some Downloader { HookedDownloader(self, hooks: hooks) }
}
