public import CacheCore

/// The limits of concurrent transfers, and the order of the waiting requests.
///
/// The most urgent request is next (`LoadPriority`, which may rise while it waits), and within one level the first or the last
/// that came. Every eighth slot goes to the oldest request, whatever its priority, so that no request waits forever. The slots
/// are counted in all and for each host. A request with *n* older ones before it waits for at most *8 (n + 1)* slots that it
/// could have had.
public struct TransferLimits: Hashable, Sendable {
  /// Transfers at the same time; at least 1.
  public let total: Int
  /// Transfers at the same time to one host and port; at least 1.
  public let perHost: Int
  /// Whether the newest of the waiting requests of one priority is next, and not the oldest. For a list that scrolls: the newest
  /// requests are for the visible rows.
  public let newestFirst: Bool
  /// The number of requests that may wait, or `nil` for any number. A further request fails with `CacheError.Code.queueFull`.
  public let maximumWaiting: Int?

  /// Creates limits. A number below the smallest possible one is replaced by that.
  public init(
    total: Int = .max, perHost: Int = .max, newestFirst: Bool = false, maximumWaiting: Int? = nil
  ) {
    self.total = max(1, total)
    self.perHost = max(1, perHost)
    self.newestFirst = newestFirst
    self.maximumWaiting = maximumWaiting.map { max(0, $0) }
  }
}

extension CacheError.Code {
  /// Too many transfers wait: see ``TransferLimits/maximumWaiting``.
  public static let queueFull = Self(rawValue: "queueFull")
}
