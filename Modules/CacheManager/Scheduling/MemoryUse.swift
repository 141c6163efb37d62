/// The memory that the loads of a manager use of its budget (``ResourceManager/Configuration/memoryBudget``), in bytes.
public struct MemoryUse: Hashable, Sendable {
  /// The budget.
  public var limit: Int
  /// The memory in use: bodies that are arriving, with the part that is expected next, and values that are being made.
  public var inUse: Int
  /// The highest use so far.
  public var peak: Int
  /// The number of loads that wait for memory.
  public var waiting: Int

  /// Creates a use from its parts.
  public init(limit: Int, inUse: Int = 0, peak: Int = 0, waiting: Int = 0) {
    (self.limit, self.inUse, self.peak, self.waiting) = (limit, inUse, peak, waiting)
  }
}
