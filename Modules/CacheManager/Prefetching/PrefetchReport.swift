public import CacheCore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a prefetch has done.
public struct PrefetchReport: Sendable {
  /// Loaded, or confirmed, over the network.
  public var loaded = 0
  /// Not downloaded, because the response was cached already. The value of a transform was made if it was missing.
  public var skipped = 0
  /// In the cache and outdated, but nobody could be asked.
  public var unconfirmed = 0
  /// Not loaded, with the reasons, in the order in which they were asked for. What was cancelled is listed too.
  ///
  /// The latest ``listedFailures`` of them, or as many as were ever asked for in one call, if that is more: one call's are never
  /// cut.
  public var failed: [Failure] = []
  /// How many failed before those in ``failed``, and are counted only: a prefetcher that lives as long as its app does not grow
  /// with what fails.
  public var unlistedFailures = 0
  /// Asked for while the same was waiting or under way already: counted here and nowhere else.
  public var duplicates = 0

  /// How many failures are listed at least.
  public static let listedFailures = 1_000

  /// Why one URL is not in the cache.
  public struct Failure: Sendable {
    /// What was asked for.
    public var url: URL
    /// Why it is not there.
    public var error: CacheError
  }
}

/// How far a ``Prefetcher`` has come.
public struct PrefetchProgress: Hashable, Sendable {
  /// How many resources have been asked for, duplicates not counted.
  public var total = 0
  /// Under way.
  public var running = 0
  /// Loaded, or confirmed, over the network.
  public var loaded = 0
  /// Not downloaded, because the response was cached already. The value of a transform was made if it was missing.
  public var skipped = 0
  /// In the cache and outdated, but nobody could be asked.
  public var unconfirmed = 0
  /// Not loaded, or cancelled.
  public var failed = 0

  /// Nothing asked for yet.
  public init() {}

  /// How many have come to their end, whatever it was.
  public var finished: Int { loaded + skipped + unconfirmed + failed }

  /// Whether there is nothing left to do.
  public var isFinished: Bool { finished == total }

  /// Between 0 and 1; 1 where nothing has been asked for.
  public var fraction: Double { total == 0 ? 1 : Double(finished) / Double(total) }
}

/// The layers that a ``Prefetcher`` puts responses and values into.
public enum PrefetchDestination: Hashable, Sendable {
  /// Every layer that the request may write, as a load of the same request would.
  case cache
  /// The memory store alone, for what is shown soon and need not outlive the process.
  ///
  /// The durable store is read but not written. A load of the same request would write it, so it makes a transfer of its own
  /// while this one is under way.
  case memory
  /// The durable store alone. Bytes stream there and are held nowhere, so the size of a body does not matter to memory. A value
  /// is made in memory and stored in its encoded form.
  case disk
}
