public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Loads resources into the cache ahead of time, a few at a time and at low priority. Skips the resources that are cached
/// already.
///
/// ```swift
/// let prefetcher = manager.prefetcher(into: .disk, concurrency: 4)
/// prefetcher.append(urls)
/// for await progress in prefetcher.updates { bar.fraction = progress.fraction }
/// let report = await prefetcher.report()
/// ```
///
/// When a load requests a resource that waits here, that item moves to the front and becomes as urgent as the load. Both share
/// one transfer. A failure does not stop the other items. A prefetcher may be used again when no work is left.
///
/// Releasing the prefetcher cancels the items that it has not started. Running loads continue to their end.
public final class Prefetcher: Sendable {
  private let queue: PrefetchQueue

  init(_ queue: PrefetchQueue) { self.queue = queue }

  deinit { queue.cancelWaiting() }

  /// Adds requests, with their fields and options, behind the requests that wait already.
  ///
  /// A request that equals one that waits or runs is merged with it. Priorities above `low` are lowered to it. Each request costs
  /// O(1).
  public func append(_ requests: [ResourceRequest]) { queue.append(requests) }

  /// Adds URLs.
  public func append(_ urls: [URL], options: RequestOptions = RequestOptions()) {
    append(urls.map { ResourceRequest($0, options: options) })
  }

  /// Stops starting loads. Running loads continue.
  public func pause() { queue.isPaused = true }

  /// Starts loads again after ``pause()``.
  public func resume() { queue.isPaused = false }

  /// Whether the prefetcher is paused: ``pause()`` was called after the last ``resume()``.
  public var isPaused: Bool { queue.isPaused }

  /// Cancels the waiting and the running items. A transfer that another load waits for continues.
  public func cancel() { queue.cancel { _ in true } }

  /// Cancels the waiting and the running items of these URLs.
  public func cancel(_ urls: [URL]) {
    let urls = Set(urls)
    queue.cancel { urls.contains($0) }
  }

  /// The current progress.
  public var progress: PrefetchProgress { queue.progress }

  /// The current progress, then each change, until no work is left. A slow consumer receives the latest progress and not every
  /// step before it.
  ///
  /// Each access creates a sequence of its own, for one consumer.
  public var updates: AsyncStream<PrefetchProgress> { queue.updates() }

  /// Waits until no work is left, and returns the results since the prefetcher was created.
  ///
  /// Cancelling the calling task ends the wait, not the prefetch. The call then returns the results so far.
  public func report() async -> PrefetchReport { await queue.report() }
}
