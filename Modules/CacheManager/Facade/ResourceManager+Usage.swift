public import CacheCore

extension ResourceManager {
  /// Returns the number and size of the entries in memory and on disk.
  ///
  /// ```swift
  /// let usage = try await manager.usage()
  /// print(usage.memory?.bytes ?? 0, usage.disk?.bytes ?? 0)
  /// ```
  ///
  /// - Returns: for each layer, `nil` if the manager has no such store or if the store does not count its entries.
  /// - Throws: the error of the durable store, with path and reason.
  public func usage() async throws(CacheError) -> (memory: StoreUsage?, disk: StoreUsage?) {
    (configuration.memory?.usage(), try await configuration.store?.usage())
  }

  /// The memory that running loads use of the budget (``Configuration/memoryBudget``), in bytes, and the number of loads that
  /// wait for memory. The entries of the memory store are not part of it; see `usage()`.
  ///
  /// - Returns: the budget; the memory in use, for bodies that are arriving and values that are being made; the highest use so
  ///   far; the number of waiting loads.
  public var memoryUse: (limit: Int, inUse: Int, peak: Int, waiting: Int) { core.budget.use }
}
