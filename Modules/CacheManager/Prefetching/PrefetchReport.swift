public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The results of a prefetch.
public struct PrefetchReport: Sendable {
  /// The number of resources that were loaded or confirmed over the network, or by a scheme handler.
  public var loaded = 0
  /// The number of resources that were not downloaded, because the response was cached already. If the value of a transform was
  /// missing, it was made.
  public var skipped = 0
  /// The number of cached resources that are stale and could not be revalidated.
  public var unconfirmed = 0
  /// The resources that were not loaded, with the errors, in the order in which they were requested. Cancelled requests are
  /// listed too.
  ///
  /// The list has the latest ``listedFailures`` failures, or as many as the largest single call requested, if that is more. So
  /// the failures of one call alone are never cut.
  public var failed: [(url: URL, error: CacheError)] = []
  /// The number of earlier failures, which are counted but not listed in ``failed``. So a prefetcher that lives as long as its
  /// app does not grow with each failure.
  public var unlistedFailures = 0
  /// The number of requests that were equal to one that waited or ran already. They are counted here and nowhere else.
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
  /// The number of resources that were loaded or confirmed over the network, or by a scheme handler.
  public var loaded = 0
  /// The number of resources that were not downloaded, because the response was cached already. If the value of a transform was
  /// missing, it was made.
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
  /// The durable store is read but not written. A load of the same request would write it, so it makes a transfer of its own if
  /// this one is running.
  case memory
  /// The durable store alone. Bytes stream there and are not collected in memory, so the size of a body does not matter to
  /// memory. A value is made in memory and stored in its encoded form.
  case disk
}
