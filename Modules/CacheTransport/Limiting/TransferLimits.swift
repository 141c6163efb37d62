public import CacheCore

/// The limits of concurrent transfers, and the order of the waiting requests.
///
/// The most urgent request is next (`LoadPriority`, which may rise while it waits), and within one level the first or the last
/// that came. Every eighth slot goes to the oldest request, whatever its priority, so that no request waits forever. The slots
/// are counted in all and for each host. A request with *n* older ones before it waits for at most *8 (n + 1)* slots that it
/// could have had.
public struct TransferLimits: Hashable, Sendable {
  /// The order of waiting requests of one priority.
  public enum Order: String, Hashable, Sendable, CaseIterable {
    /// The oldest request first.
    case firstInFirstOut
    /// The newest request first, for a list that scrolls: the newest requests are for the visible rows.
    case lastInFirstOut
  }

  /// Transfers at the same time; at least 1.
  public let total: Int
  /// Transfers at the same time to one host and port; at least 1.
  public let perHost: Int
  /// The order of waiting requests of one priority.
  public let order: Order
  /// The number of requests that may wait, or `nil` for any number. A further request fails with `CacheError.Code.queueFull`.
  public let maximumWaiting: Int?

  /// Creates limits. A number below the smallest possible one is replaced by that.
  public init(
    total: Int = .max, perHost: Int = .max, order: Order = .firstInFirstOut, maximumWaiting: Int? = nil
  ) {
    self.total = max(1, total)
    self.perHost = max(1, perHost)
    self.order = order
    self.maximumWaiting = maximumWaiting.map { max(0, $0) }
  }
}

extension CacheError.Code {
  /// Too many transfers wait: see ``TransferLimits/maximumWaiting``.
  public static let queueFull = Self(rawValue: "queueFull")
}
