/// What the loads of a manager take of its memory budget (``ResourceManager/Configuration/memoryBudget``). All in bytes but
/// ``waiting``.
public struct MemoryUse: Hashable, Sendable {
  /// What they may take.
  public var limit: Int
  /// What they take now: bodies that have begun to come, with the part of them that is thought to come next, and values that are
  /// being made.
  public var inUse: Int
  /// The most that they took at once, so far.
  public var peak: Int
  /// How many of them wait until there is room.
  public var waiting: Int

  /// Figures of their parts.
  public init(limit: Int, inUse: Int = 0, peak: Int = 0, waiting: Int = 0) {
    (self.limit, self.inUse, self.peak, self.waiting) = (limit, inUse, peak, waiting)
  }
}
