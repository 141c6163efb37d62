public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ResourceManager {
  /// Creates a prefetcher of bytes.
  ///
  /// The prefetcher does not keep the manager alive. Releasing the prefetcher ends no running load.
  ///
  /// - Parameters:
  ///   - destination: The layers that receive the responses.
  ///   - concurrency: The number of loads that run at the same time, at least 1. With a lower number, each load fails with
  ///     `CacheError.Code.invalidConfiguration`.
  public func prefetcher(into destination: PrefetchDestination = .cache, concurrency: Int = 4) -> Prefetcher {
    prefetcher(as: .bytes, into: destination, concurrency: concurrency)
  }

  /// Creates a prefetcher of transformed values, such as the thumbnails of the next screen.
  ///
  /// ```swift
  /// let prefetcher = manager.prefetcher(as: thumbnail)
  /// prefetcher.append(urls)
  /// ```
  ///
  /// A value that is in memory or in the durable store is skipped. If only its original is stored, the value is made from it.
  ///
  /// - Parameters:
  ///   - transform: The transform that makes the values.
  ///   - destination: The layers that receive responses and values. `RequestOptions.storagePolicy` decides which values the
  ///     durable store receives.
  ///   - concurrency: The number of loads that run at the same time, at least 1. With a lower number, each load fails with
  ///     `CacheError.Code.invalidConfiguration`.
  public func prefetcher<Value: Sendable>(
    as transform: ResourceTransform<Value>, into destination: PrefetchDestination = .cache, concurrency: Int = 4
  ) -> Prefetcher {
    Prefetcher(PrefetchQueue(core, transform, destination, concurrency: concurrency))
  }

  /// Loads resources into the cache ahead of time, and returns when all are done. The loads run at low priority, a few at a time,
  /// and skip the resources that are cached.
  ///
  /// A failure does not stop the other loads. Cancelling the calling task stops the transfers.
  ///
  /// - Parameters:
  ///   - requests: The requests to load, in this order.
  ///   - destination: The layers that receive the responses.
  ///   - concurrency: The number of loads that run at the same time, at least 1. With a lower number, each load fails with
  ///     `CacheError.Code.invalidConfiguration`.
  public func prefetch(
    _ requests: [ResourceRequest], into destination: PrefetchDestination = .cache, concurrency: Int = 4
  ) async -> PrefetchReport {
    await prefetch(requests, as: .bytes, into: destination, concurrency: concurrency)
  }

  /// Loads resources and makes their values ahead of time, like ``prefetcher(as:into:concurrency:)``, and returns when all are
  /// done.
  public func prefetch<Value: Sendable>(
    _ requests: [ResourceRequest], as transform: ResourceTransform<Value>, into destination: PrefetchDestination = .cache,
    concurrency: Int = 4
  ) async -> PrefetchReport {
    let queue = PrefetchQueue(core, transform, destination, concurrency: concurrency)
    return await withTaskCancellationHandler {
      queue.append(requests)
      if Task.isCancelled { queue.cancel { _ in true } }
      return await queue.wholeReport()
    } onCancel: {
      queue.cancel { _ in true }
    }
  }

  /// Loads URLs into the cache ahead of time, and returns when all are done.
  public func prefetch(
    _ urls: [URL], into destination: PrefetchDestination = .cache, concurrency: Int = 4,
    options: RequestOptions = RequestOptions()
  ) async -> PrefetchReport {
    await prefetch(urls.map { ResourceRequest($0, options: options) }, into: destination, concurrency: concurrency)
  }

  /// Loads URLs and makes their values ahead of time, and returns when all are done.
  public func prefetch<Value: Sendable>(
    _ urls: [URL], as transform: ResourceTransform<Value>, into destination: PrefetchDestination = .cache, concurrency: Int = 4,
    options: RequestOptions = RequestOptions()
  ) async -> PrefetchReport {
    await prefetch(
      urls.map { ResourceRequest($0, options: options) }, as: transform, into: destination, concurrency: concurrency)
  }
}
