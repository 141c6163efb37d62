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

  /// The memory that running loads have reserved, and the number of loads that wait for memory. The entries of the memory store
  /// are not part of it; see `usage()`.
  public var memoryUse: MemoryUse { core.budget.use }
}
