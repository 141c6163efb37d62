public import CacheCore

/// The limits of concurrent transfers and the order of the waiting requests.
///
/// The request with the highest `LoadPriority` starts next. Among equal priorities, ``newestFirst`` selects the newest or the
/// oldest. Every eighth free slot goes to the oldest request, regardless of its priority, so that no request waits forever. The
/// rule applies to the slots of each host and to all slots together. A request with *n* older requests before it starts after at
/// most *8 (n + 1)* free slots that its host's limit lets it use.
public struct TransferLimits: Hashable, Sendable {
  /// The maximum number of concurrent transfers, at least 1.
  public let total: Int
  /// The maximum number of concurrent transfers to one host and port, at least 1.
  public let perHost: Int
  /// Whether the newest waiting request of a priority starts first, instead of the oldest. Set it for a list that scrolls, where
  /// the newest requests are for the visible rows.
  public let newestFirst: Bool
  /// The maximum number of waiting requests, or `nil` for no limit. A further request fails with `CacheError.Code.queueFull`.
  public let maximumWaiting: Int?

  /// Creates limits. A value below its minimum is raised to the minimum.
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
  /// The code of a request that is refused because too many transfers wait. See ``TransferLimits/maximumWaiting``.
  public static let queueFull = Self(rawValue: "queueFull")
}
