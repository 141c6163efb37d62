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
  /// The maximum number of waiting requests, at least zero, or `nil` for no limit. A further request fails with
  /// `CacheError.Code.queueFull`.
  public let maximumWaiting: Int?

  /// Creates limits. With a number below its minimum, requests fail with `CacheError.Code.invalidConfiguration`.
  public init(
    total: Int = .max, perHost: Int = .max, newestFirst: Bool = false, maximumWaiting: Int? = nil
  ) {
    self.total = total
    self.perHost = perHost
    self.newestFirst = newestFirst
    self.maximumWaiting = maximumWaiting
  }

  func check() throws(CacheError) {
    try CacheError.require("total", total, in: 1...)
    try CacheError.require("perHost", perHost, in: 1...)
    try CacheError.require("maximumWaiting", maximumWaiting, in: 0...)
  }
}

extension CacheError.Code {
  /// The code of a request that is refused because too many transfers wait. See ``TransferLimits/maximumWaiting``.
  public static let queueFull = Self(rawValue: "queueFull")
}
