internal import CacheCore

extension MemoryCache {
  /// Bounds of a ``MemoryCache``; negative numbers count as zero.
  public struct Limits: Hashable, Sendable {
    /// Bytes for all entries together.
    public var cost: Int
    /// Entries.
    public var count: Int
    /// Bytes for a single entry; a larger one is refused.
    public var entryCost: Int
    /// Whether the bytes of its key count for an entry too, and 256 for what the store itself needs to keep it. Off: what the
    /// entry says, no more.
    public var includesOverhead: Bool

    /// Bounds; without `entryCost` a single entry may take a quarter of `cost`.
    public init(cost: Int = Limits.defaultCost, count: Int = .max, entryCost: Int? = nil, includesOverhead: Bool = false) {
      self.cost = max(0, cost)
      self.count = max(0, count)
      self.entryCost = max(0, entryCost ?? self.cost / 4)
      self.includesOverhead = includesOverhead
    }

    /// A fifth of the machine's memory, at most 512 MiB.
    public static let defaultCost = min(512 << 20, (HostResources.memory ?? 1 << 30) / 5)

    /// What an entry weighs under these limits.
    func cost(of entry: MemoryEntry, _ key: CacheKey) -> Int {
      guard includesOverhead else { return entry.cost }
      let keeping = key.resource.utf8.count + key.variant.utf8.count + key.transform.utf8.count + 256
      let (sum, overflow) = entry.cost.addingReportingOverflow(keeping)
      return overflow ? .max : sum
    }
  }
}
