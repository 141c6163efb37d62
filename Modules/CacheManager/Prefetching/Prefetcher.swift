public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Brings resources into the cache ahead of time: a few at a time, at low priority, leaving alone what the cache can answer.
///
/// ```swift
/// let prefetcher = manager.prefetcher(into: .disk, concurrency: 4)
/// prefetcher.append(urls)
/// for await progress in prefetcher.updates { bar.fraction = progress.fraction }
/// let report = await prefetcher.report()
/// ```
///
/// When a load asks for what is waiting here, it moves to the front and becomes as urgent as the load; the two make one transfer.
/// A failure does not stop the others. A prefetcher may be used again when it has nothing left to do.
///
/// Releasing it cancels what it has not started; what is under way comes to its end.
public final class Prefetcher: Sendable {
  private let queue: PrefetchQueue

  init(_ queue: PrefetchQueue) { self.queue = queue }

  deinit { queue.cancelWaiting() }

  /// Adds requests, with their fields and options, behind those that wait already.
  ///
  /// What is equal to one that waits, or is under way, is folded into it. Priorities above `low` are lowered to it. O(1) for
  /// each.
  public func append(_ requests: [ResourceRequest]) { queue.append(requests) }

  /// Adds URLs.
  public func append(_ urls: [URL], options: RequestOptions = RequestOptions()) {
    append(urls.map { ResourceRequest($0, options: options) })
  }

  /// Starts nothing more; what is under way goes on.
  public func pause() { queue.isPaused = true }

  /// Goes on after ``pause()``.
  public func resume() { queue.isPaused = false }

  /// Whether ``pause()`` was called last.
  public var isPaused: Bool { queue.isPaused }

  /// Cancels what waits and what is under way. A transfer that somebody else waits for goes on for them.
  public func cancel() { queue.cancel { _ in true } }

  /// Cancels some of it: whatever was asked for by these URLs.
  public func cancel(_ urls: [URL]) {
    let urls = Set(urls)
    queue.cancel { urls.contains($0) }
  }

  /// How far it has come.
  public var progress: PrefetchProgress { queue.progress }

  /// How far it has come, at once and at each step, until there is nothing left to do. Who is slow gets the latest and not all
  /// that came before.
  ///
  /// Each access makes a sequence of its own, for one consumer.
  public var updates: AsyncStream<PrefetchProgress> { queue.updates() }

  /// Waits until there is nothing left to do, and tells what was done since the prefetcher was made.
  ///
  /// Cancelling the calling task ends the waiting, not the prefetch: it returns what has been done up to then.
  public func report() async -> PrefetchReport { await queue.report() }
}
