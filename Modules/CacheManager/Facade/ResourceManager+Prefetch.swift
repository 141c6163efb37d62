public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// A prefetcher, which has nothing to do yet. It does not keep the manager alive, and ends with it no load.
  ///
  /// - Parameters:
  ///   - destination: every layer, or the durable store alone.
  ///   - concurrency: how many loads run at the same time; at least 1.
  public func prefetcher(into destination: PrefetchDestination = .cache, concurrency: Int = 4) -> Prefetcher {
    Prefetcher(PrefetchQueue(core, configuration, destination, concurrency: concurrency))
  }

  /// Brings resources into the cache ahead of time, and returns when that is done: at low priority, a few at a time, skipping
  /// what is cached.
  ///
  /// A failure does not stop the others. Cancelling the calling task stops the transfers.
  ///
  /// - Parameters:
  ///   - requests: what to bring in, in this order.
  ///   - destination: every layer, or the durable store alone.
  ///   - concurrency: how many loads run at the same time; at least 1.
  public func prefetch(
    _ requests: [ResourceRequest], into destination: PrefetchDestination = .cache, concurrency: Int = 4
  ) async -> PrefetchReport {
    let queue = PrefetchQueue(core, configuration, destination, concurrency: concurrency)
    return await withTaskCancellationHandler {
      queue.append(requests)
      if Task.isCancelled { queue.cancel { _ in true } }
      return await queue.wholeReport()
    } onCancel: {
      queue.cancel { _ in true }
    }
  }

  /// Brings URLs into the cache ahead of time, and returns when that is done.
  public func prefetch(
    _ urls: [URL], into destination: PrefetchDestination = .cache, concurrency: Int = 4,
    options: RequestOptions = RequestOptions()
  ) async -> PrefetchReport {
    await prefetch(urls.map { ResourceRequest($0, options: options) }, into: destination, concurrency: concurrency)
  }
}
