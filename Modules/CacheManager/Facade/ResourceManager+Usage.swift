public import CacheCore

/// The number and size of the entries in a manager's stores.
public struct CacheUsage: Hashable, Sendable {
  /// The entries in memory, or `nil` if the manager has no memory store or if that store does not count them.
  public var memory: StoreUsage?
  /// The entries on disk, or `nil` if the manager has no durable store or if that store does not count them.
  public var disk: StoreUsage?

  /// Creates a usage from its parts.
  public init(memory: StoreUsage? = nil, disk: StoreUsage? = nil) {
    self.memory = memory
    self.disk = disk
  }
}

extension ResourceManager {
  /// Returns the number and size of the entries in memory and on disk.
  ///
  /// ```swift
  /// let usage = try await manager.usage()
  /// print(usage.memory?.bytes ?? 0, usage.disk?.bytes ?? 0)
  /// ```
  ///
  /// - Throws: the error of the durable store, with path and reason.
  public func usage() async throws(CacheError) -> CacheUsage {
    CacheUsage(memory: configuration.memory?.usage(), disk: try await configuration.store?.usage())
  }

  /// The memory that running loads have reserved, and the number of loads that wait for memory. The entries of the memory store
  /// are not part of it; see `usage()`.
  public var memoryUse: MemoryUse { core.budget.use }
}
