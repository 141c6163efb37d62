public import CacheCore

/// How many transfers may run at the same time, and who is next when one has ended.
///
/// The most urgent waiter is next (`LoadPriority`, which may rise while it waits), and within one level the first or the last
/// that came. So that nobody waits for ever, **one slot in eight goes to who has waited longest**, whatever its urgency; counted
/// over all slots and over those of each host. A waiter with *n* older ones before it has its turn after at most *8 (n + 1)*
/// slots that it could have had.
public struct TransferLimits: Hashable, Sendable {
  /// Who is next among waiters of one urgency.
  public enum Order: String, Hashable, Sendable, CaseIterable {
    /// Who came first.
    case firstInFirstOut
    /// Who came last: for a list that is scrolled, where the newest is what is looked at.
    case lastInFirstOut
  }

  /// Transfers at the same time; at least 1.
  public let total: Int
  /// Transfers at the same time to one host and port; at least 1.
  public let perHost: Int
  /// Who is next among waiters of one urgency.
  public let order: Order
  /// How many may wait; who comes when so many wait fails with `CacheError.Code.queueFull`. Nil: as many as come.
  public let maximumWaiting: Int?

  /// Limits of their parts. Numbers below the smallest that makes sense are that one.
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
  /// As many transfers wait for their turn as may: see ``TransferLimits/maximumWaiting``.
  public static let queueFull = Self(rawValue: "queueFull")
}
