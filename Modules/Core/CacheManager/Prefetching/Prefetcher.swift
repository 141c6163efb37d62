public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Loads resources into the cache ahead of time, a few at a time and at low priority. Skips resources that are already cached.
///
/// ```swift
/// let prefetcher = manager.prefetcher(into: .disk, concurrency: 4)
/// prefetcher.append(urls)
/// for await progress in prefetcher.updates { bar.fraction = progress.fraction }
/// let report = await prefetcher.report()
/// ```
///
/// When a load requests a resource that waits in the prefetcher, that item moves to the front and becomes as urgent as the load.
/// Both share one transfer. A failure does not stop the other items. A prefetcher can be used again when no work is left.
///
/// Releasing the prefetcher cancels the waiting items. Running loads continue to their end.
public final class Prefetcher: Sendable {
  private let queue: PrefetchQueue

  init(_ queue: PrefetchQueue) { self.queue = queue }

  deinit { queue.cancelWaiting() }

  /// Adds requests, with their fields and options, behind the waiting requests.
  ///
  /// A request that equals a waiting or running one is merged with it. Priorities above `low` are lowered to `low`. Each request
  /// costs O(1).
  public func append(_ requests: [ResourceRequest]) { queue.append(requests) }

  /// Adds URLs.
  public func append(_ urls: [URL], options: RequestOptions = RequestOptions()) {
    append(urls.map { ResourceRequest($0, options: options) })
  }

  /// Stops starting loads. Running loads continue.
  public func pause() { queue.isPaused = true }

  /// Starts loads again after ``pause()``.
  public func resume() { queue.isPaused = false }

  /// Whether the prefetcher is paused.
  public var isPaused: Bool { queue.isPaused }

  /// Cancels the waiting and the running items. A transfer that another load waits for continues.
  public func cancel() { queue.cancel() }

  /// Cancels the waiting and the running items of these requests. A request equals an appended one if the URL or the `key`, the
  /// method, the fields, the `partition` and the stores are equal. An interceptor does not affect that. With a `key`, also one of
  /// `ResourceManager.Configuration.cacheKey`, the URL has no effect. A store that is adapted is the manager's. A GET with a body
  /// differs from one without.
  public func cancel(_ requests: [ResourceRequest]) { queue.cancel(requests) }

  /// Cancels the waiting and the running items of URLs that were appended with such options.
  public func cancel(_ urls: [URL], options: RequestOptions = RequestOptions()) {
    cancel(urls.map { ResourceRequest($0, options: options) })
  }

  /// The current progress.
  public var progress: PrefetchProgress { queue.progress }

  /// The current progress, then each change, until no work is left. A slow consumer receives only the latest progress.
  ///
  /// Each access creates a new sequence, for one consumer.
  public var updates: AsyncStream<PrefetchProgress> { queue.updates() }

  /// Waits until no work is left, and returns the results since the prefetcher was created.
  ///
  /// Cancelling the calling task ends the wait, not the prefetch. The call then returns the results so far.
  public func report() async -> PrefetchReport { await queue.report() }

  /// Returns the identity by which ``cancel(_:)`` finds a request.
  package func identity(of request: ResourceRequest) -> RequestIdentity { queue.identity(of: request) }
}

/// The results of a prefetch.
public struct PrefetchReport: Sendable {
  /// The number of resources that were loaded or confirmed over the network, or by a scheme handler.
  ///
  /// With the destination ``PrefetchDestination/disk``, this, ``skipped`` and ``unconfirmed`` count only resources that the store
  /// had when the last load ended.
  public var loaded = 0
  /// The number of resources that were not downloaded, because the response was already cached. A missing value of a transform
  /// was made.
  public var skipped = 0
  /// The number of cached resources that are stale and could not be revalidated.
  public var unconfirmed = 0
  /// The resources that were not loaded, with the errors, in the order in which they were requested. Cancelled requests are
  /// listed too.
  ///
  /// With the destination ``PrefetchDestination/disk``, the resources that the store does not have are listed too. The error is
  /// that of the store, such as `entryTooLarge`, or `notCached` if the response must not be stored or was evicted for later ones.
  ///
  /// The list contains the latest ``listedFailures`` failures. If a single call requested more resources, the list has room for
  /// that many. The failures of one call are therefore never cut.
  public var failed: [(url: URL, error: CacheError)] = []
  /// The number of earlier failures, which are counted but not listed in ``failed``. The limit keeps a prefetcher that lives as
  /// long as its app from growing with each failure.
  public var unlistedFailures = 0
  /// The number of requests that were equal to a waiting or running one. They are counted only here.
  public var duplicates = 0

  /// The minimum number of failures for which ``failed`` has room.
  public static let listedFailures = 1_000
}

/// The progress of a ``Prefetcher``.
public struct PrefetchProgress: Hashable, Sendable {
  /// The number of requested resources, without duplicates.
  public var total = 0
  /// The number of resources that are being loaded.
  public var running = 0
  /// The number of resources that were loaded or confirmed: see ``PrefetchReport/loaded``.
  ///
  /// Whenever no work is left, a prefetch into the durable store looks for the responses of this round. Those that were evicted
  /// meanwhile then count as ``failed``. The bytes of a round of one response are checked together with the next round.
  public var loaded = 0
  /// The number of resources that were not downloaded: see ``PrefetchReport/skipped``.
  public var skipped = 0
  /// The number of cached resources that are stale and could not be revalidated.
  public var unconfirmed = 0
  /// The number of resources that were not loaded, including the cancelled ones.
  public var failed = 0

  /// Creates the progress of a prefetcher without requests.
  public init() {}

  /// The number of resources that have ended, with any result.
  public var finished: Int { loaded + skipped + unconfirmed + failed }

  /// Whether no work is left.
  public var isFinished: Bool { finished == total }

  /// The finished fraction, between 0 and 1. It is 1 if nothing was requested.
  public var fraction: Double { total == 0 ? 1 : Double(finished) / Double(total) }
}

/// The layers that a ``Prefetcher`` puts responses and values into.
public enum PrefetchDestination: Hashable, Sendable {
  /// Every layer that the request may write, as a load of the same request would.
  case cache
  /// The memory store alone, for resources that are shown soon and need not outlive the process.
  ///
  /// The durable store is read but not written. If a load requests the same resource in the meantime, it makes its own transfer,
  /// because it writes the durable store.
  case memory
  /// The durable store alone. Bytes stream to it and are not collected in memory, so even large bodies use little memory. A value
  /// is made in memory and stored in its encoded form.
  ///
  /// The report counts a resource as loaded only if the store has it at the end of its round: see ``PrefetchReport/failed``.
  case disk
}

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
  ///   - concurrency: The number of loads that run at the same time: see ``prefetcher(into:concurrency:)``.
  public func prefetcher<Value: Sendable>(
    as transform: ResourceTransform<Value>, into destination: PrefetchDestination = .cache, concurrency: Int = 4
  ) -> Prefetcher {
    Prefetcher(PrefetchQueue(core, transform, destination, concurrency: concurrency))
  }

  /// Loads resources into the cache ahead of time, and returns when all are done. The loads run at low priority, a few at a time,
  /// and skip the resources that are cached.
  ///
  /// ```swift
  /// let report = await manager.prefetch(urls, into: .disk)
  /// print(report.loaded, report.failed)
  /// ```
  ///
  /// A failure does not stop the other loads. Cancelling the calling task stops the transfers. For the parameters see
  /// ``prefetcher(into:concurrency:)``.
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
      if Task.isCancelled { queue.cancel() }
      // The report includes the cancelled items, so the wait for it does not end with the calling task.
      return await Task { await queue.report() }.value
    } onCancel: {
      queue.cancel()
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
