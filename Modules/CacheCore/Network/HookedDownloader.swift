/// Any engine, with ``DownloaderHooks`` on it, for engines that don't take them themselves.
///
/// ```swift
/// let watched = HookedDownloader(engine, hooks: watcher)   // `watcher` is held weakly
/// ```
public final class HookedDownloader: Downloader {
  private struct Held {
    weak var hooks: (any DownloaderHooks)?
  }

  /// Unlike any other's: hooks can't be compared.
  public let id: ComponentID
  private let base: any Downloader
  private let held: Lock<Held>

  /// An engine with hooks.
  ///
  /// - Parameters:
  ///   - base: who downloads; held strongly.
  ///   - hooks: held weakly; once it is gone the engine is as it was.
  public init(_ base: any Downloader, hooks: any DownloaderHooks) {
    id = .unique(HookedDownloader.self)
    self.base = base
    held = Lock(Held(hooks: hooks))
  }

  public var preferredExecutor: (any TaskExecutor)? { base.preferredExecutor }

  /// Sends the request past the hooks and returns at the head of the answer.
  public func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let hooks = held.withLock({ $0.hooks }) else { return try await base.download(request) }
    let exchange = HookedExchange(hooks, request)
    var request = request
    request.head = try await exchange.willStart()
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
