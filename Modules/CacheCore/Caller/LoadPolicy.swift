/// Where a load may take its answer from, and when it asks the network.
public enum LoadPolicy: Hashable, Sendable {
  /// RFC 9111: fresh → the cache; stale → a conditional request; not storable → not stored. An answer that states no lifetime is
  /// revalidated, never guessed fresh.
  case standard
  /// Whatever is cached and not expired by the store's own time to live, without a request; else the network.
  case cacheFirst
  /// A conditional request when something is stored.
  ///
  /// - Parameters:
  ///   - atMostEvery: an answer that was stored or confirmed less than this ago is used without asking.
  ///   - showCachedAfter: when the network takes longer, the stored answer is shown; asking goes on behind it.
  case revalidate(atMostEvery: Duration? = nil, showCachedAfter: Duration? = nil)
  /// Ignores the cache for reading, stores the answer.
  case reload
  /// Never the network; whatever is stored, however old. A miss is an error that says so.
  case cacheOnly
  /// Memory, else the network; the disk is not read.
  case memoryElseReload
  /// The stored answer now, and the fresh one when it comes (RFC 5861 §3): the event stream yields both, the other forms answer
  /// with the stored one.
  case staleWhileRevalidate
}
