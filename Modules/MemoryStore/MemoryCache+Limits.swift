internal import CacheCore

extension MemoryCache {
  /// The limits of a ``MemoryCache``, each at least zero. With zero, nothing is stored.
  ///
  /// A store with a negative limit stores nothing, and a manager with it fails each load with
  /// `CacheError.Code.invalidConfiguration`.
  public struct Limits: Hashable, Sendable {
    /// The maximum cost of all entries, in bytes.
    public var cost: Int
    /// The maximum number of entries.
    public var count: Int
    /// The maximum cost of a single entry, in bytes. A larger entry is refused.
    public var entryCost: Int
    /// Whether the cost of an entry includes the bytes of its key and 256 bytes for the store's own overhead. If not, the cost is
    /// ``/CacheCore/MemoryEntry/cost`` alone.
    public var includesOverhead: Bool

    /// Creates limits. By default, the maximum cost of a single entry is a quarter of `cost`.
    public init(cost: Int = Limits.defaultCost, count: Int = .max, entryCost: Int? = nil, includesOverhead: Bool = false) {
      self.cost = cost
      self.count = count
      self.entryCost = entryCost ?? cost / 4
      self.includesOverhead = includesOverhead
    }

    /// The default cost limit: a fifth of the machine's memory, at most 512 MiB.
    public static let defaultCost = min(512 << 20, (HostResources.memory ?? 1 << 30) / 5)

    func check() throws(CacheError) {
      try CacheError.require("cost", cost, in: 0...)
      try CacheError.require("count", count, in: 0...)
      try CacheError.require("entryCost", entryCost, in: 0...)
    }

    /// Returns the cost of an entry under these limits.
    func cost(of entry: MemoryEntry, _ key: CacheKey) -> Int {
      guard includesOverhead else { return entry.cost }
      let keeping = key.resource.utf8.count + key.variant.utf8.count + key.transform.utf8.count + 256
      let (sum, overflow) = entry.cost.addingReportingOverflow(keeping)
      return overflow ? .max : sum
    }
  }
}
